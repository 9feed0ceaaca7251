/** One cue: its next runs, what happened, its definition, and actions. */
import type { CueDetail, Executions } from '../../../client/types.ts'
import { afterText } from '../../../schedule/after-text.ts'
import { post } from '../api.ts'
import { useShortcuts } from '../keys.ts'
import { plain } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { localZone, serviceNow, useZone, zoneFor } from '../time.ts'
import { Button, ButtonLink, type Children, Code, count, counted, Empty, Facts, Id, Panel, Tag } from '../ui/basics.tsx'
import { act, show } from '../ui/dialog.tsx'
import { Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'
import { ChainPanel } from './chain.tsx'
import { FireDialog, PauseDialog, removeCue, TestDialog } from './cue-actions.tsx'
import { CueFigures, Durations, useLatest } from './cue-figures.tsx'
import { type Draft, draftOf, type Field, fields, textOf } from './cue-model.ts'
import { CueStatus, pauseText, zoneOf } from './cues.tsx'
import { ExecutionTable, whileMoving } from './executions.tsx'
import { HistoryPanel } from './history.tsx'
import { NextRuns, useSchedulePreview } from './schedule.tsx'
import { fireCalls } from './teach.ts'

/** Milliseconds to the next read while an execution is about to change, or to just after the next run. */
const whileRunning = ({ executions, next_run }: CueDetail): number | undefined => {
  const ms = next_run ? Date.parse(next_run) - serviceNow() : Number.NaN
  return whileMoving(executions) ?? (ms > -60_000 ? Math.max(ms + 300, 1000) : undefined)
}

export const CuePage = ({ id }: { id: string }) => {
  const read = useRead<CueDetail>(`/v1/cues/${encodeURIComponent(id)}`, {}, { every: whileRunning })
  const { data: cue } = read
  const mayWrite = useMay('write')
  const { go } = usePlace()
  const isActive = cue?.status === 'active'
  const isPaused = cue?.status === 'paused'
  const fire = () => cue && show(<FireDialog cue={cue} onDone={read.reload} />)
  const pause = () => cue && show(<PauseDialog cue={cue} onDone={read.reload} />)
  const resume = () => act(() => post(`/v1/cues/${id}/resume`, {}), 'The cue runs again').then(read.reload)
  useShortcuts(
    mayWrite && cue
      ? [
          { key: 'f', text: 'Fire now', run: fire },
          { key: 'p', text: isPaused ? 'Resume' : 'Pause', run: () => void (isPaused ? resume() : isActive && pause()) },
          { key: 'i', text: 'Edit', run: () => go(to(`/cues/${id}/edit`)) }
        ]
      : []
  )
  return (
    <Page
      title={cue?.name ?? 'Cue'}
      above={{ path: '/cues', name: 'Cues' }}
      read={read}
      about={cue && <About cue={cue} />}
      actions={
        mayWrite &&
        cue && (
          <>
            <Button label="Fire now" icon="play" kind="main" shortcut="f" onClick={fire} />
            {isActive && <Button label="Pause" icon="pause" shortcut="p" onClick={pause} />}
            {isPaused && <Button label="Resume" icon="play" shortcut="p" onClick={() => void resume()} />}
            {cue.callback.url && <Button label="Test" icon="external" onClick={() => show(<TestDialog cue={cue} />)} />}
            <ButtonLink label="Duplicate" icon="copy" href={to('/cues/new', { from: id })} />
            <ButtonLink label="Edit" icon="edit" href={to(`/cues/${id}/edit`)} />
            <Button label="Delete" icon="trash" kind="quiet" iconOnly onClick={() => removeCue(cue, () => go(to('/cues')))} />
          </>
        )
      }
    >
      {cue => (
        <>
          {isPaused && <Paused cue={cue} />}
          {cue.description && <p class="lead">{cue.description}</p>}
          <Body cue={cue} />
        </>
      )}
    </Page>
  )
}

const Body = ({ cue }: { cue: CueDetail }) => {
  const latest = useLatest(cue)
  return (
    <>
      {latest && <CueFigures cue={cue} {...latest} />}
      <div class="columns">
        <Main cue={cue} latest={latest} />
        <Side cue={cue} />
      </div>
    </>
  )
}

const About = ({ cue }: { cue: CueDetail }) => (
  <>
    <CueStatus cue={cue} />
    <Id text={cue.key ?? cue.id} />
    {cue.tags.map(tag => (
      <Tag key={tag} label={tag} href={to('/cues', { tag })} />
    ))}
    {cue.managed_by && <Tag label={`set ${cue.managed_by}`} href={to('/cues', { set: cue.managed_by })} />}
  </>
)

const Paused = ({ cue }: { cue: CueDetail }) => (
  <p class={`problem ${cue.paused_by === 'user' ? 'warn' : 'bad'}`}>
    <span>
      <strong>Paused.</strong> {pauseText(cue).replace(/[^.!?]$/, '$&.')}
      {(['Since', 'Until'] as const).map(name => {
        const at = name === 'Since' ? cue.paused_at : cue.paused_until
        return at && [` ${name} `, <When key={name} at={at} zone={zoneOf(cue)} only="absolute" />, '.']
      })}
    </span>
  </p>
)

const Main = ({ cue, latest }: { cue: CueDetail; latest: Executions | undefined }) => {
  const me = useMe()
  const all = <a href={to('/executions', { cue_id: cue.id })}>{`All ${counted(cue.execution_total, 'execution')}`}</a>
  return (
    <div class="stack">
      <Panel title="Recent executions" flush actions={cue.execution_total > 0 && all}>
        {cue.executions.length > 0 ? (
          <ExecutionTable executions={cue.executions} ofOneCue zone={zoneOf(cue)} />
        ) : (
          <Empty title="No executions yet" text="Wait for its next run, or fire it now:" calls={fireCalls(me, cue.id)} />
        )}
      </Panel>
      {latest && <Durations {...latest} />}
      <HistoryPanel cue={cue} />
    </div>
  )
}

/** A field's value, marked if it is the default. */
const factOf = (field: Field, draft: Draft): [string, Children] => {
  const text = textOf(field, draft)
  const isDefault = !draft[field.path] || draft[field.path] === String(field.byDefault)
  const shown = draft[field.path] || field.kind === 'check' ? text : (field.byDefault ?? '')
  if (isDefault && field.byDefault === undefined) return [field.label, null]
  const Name = field.mono ? 'code' : 'span'
  return [
    field.label,
    <Name class="break">
      {shown} {isDefault && <span class="soft">(default)</span>}
    </Name>
  ]
}

type DefinitionProps = { title: string; parts: Field['part'][]; cue: CueDetail; more?: [string, Children][] }
const Definition = ({ title, parts, cue, more = [] }: DefinitionProps) => {
  const draft = draftOf(cue)
  const items = fields.filter(({ part, kind, isUsed }) => parts.includes(part) && kind !== 'json' && isUsed?.(draft) !== false)
  return (
    <Panel title={title}>
      <Facts items={[...items.map(field => factOf(field, draft)), ...more]} />
    </Panel>
  )
}

const Side = ({ cue }: { cue: CueDetail }) => {
  const zone = zoneFor(useZone(), zoneOf(cue))
  const preview = useSchedulePreview(cue.schedule ?? undefined, 10, cue.next_run)
  return (
    <div class="stack">
      <Panel title="Schedule">
        <p class="words">{cue.schedule ? (preview.data?.description ?? '') : afterText(cue.after!)}</p>
        {cue.schedule && <ScheduleText cue={cue} />}
        {cue.status === 'active' && preview.data && <NextRuns preview={preview.data} zone={zone} />}
        {cue.schedule && zone !== localZone() && <p class="hint">{`Times are in ${zone}; your zone is ${localZone()}.`}</p>}
      </Panel>
      <ChainPanel cue={cue} />
      {cue.approval && <Definition title="Approval" parts={['approval']} cue={cue} />}
      <Definition title="Delivery" parts={['where', 'delivery']} cue={cue} />
      <Definition
        title="Failures and overlap"
        parts={['failures']}
        cue={cue}
        more={[
          ['Completed', cue.completed_reason && plain(cue.completed_reason)],
          ['Runs so far', count(cue.run_count)],
          ['Version', cue.version],
          ['Created', <When at={cue.created_at} only="absolute" />]
        ]}
      />
      <Panel title={cue.template ? 'Payload (template)' : 'Payload'}>
        <Code text={JSON.stringify(cue.payload, null, 2)} label="payload" />
      </Panel>
    </div>
  )
}

const factsOf = (members: [string, unknown][]) =>
  members.map(([name, value]): [string, string] => [plain(name), typeof value === 'string' ? value : JSON.stringify(value)])

type Members = Record<string, unknown> & { cron?: string; at?: string; timezone: string; exclude_calendars?: string[] }
const ScheduleText = ({ cue: { schedule } }: { cue: CueDetail }) => {
  const { cron, at, timezone, exclude_calendars, type: _, ...rules } = schedule as Members
  const calendars = exclude_calendars?.map((name, n) => [
    n > 0 && ', ',
    <a key={name} href={to(`/calendars/${encodeURIComponent(name)}`)}>
      {name}
    </a>
  ])
  return (
    <Facts
      items={[
        ['Cron', cron && <code>{cron}</code>],
        ['At', at && <When at={at} zone={timezone} only="absolute" />],
        ['Zone', timezone],
        ['Calendars', calendars],
        ...factsOf(Object.entries(rules))
      ]}
    />
  )
}
