/** One cue: its next runs, what happened, its definition, and actions. */

import { useState } from 'preact/hooks'
import type { CueDetail } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useRows, useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { duration, localZone, serviceNow, useZone, zoneFor } from '../time.ts'
import { Button, ButtonLink, Code, Copy, counted, Empty, Facts, Loading, Panel, Problem, Tag } from '../ui/basics.tsx'
import { Durations } from '../ui/chart.tsx'
import { act } from '../ui/dialog.tsx'
import { Above, Page } from '../ui/frame.tsx'
import { When } from '../ui/when.tsx'
import { DeleteDialog, FireDialog, PauseDialog } from './cue-actions.tsx'
import { CueStatus, pauseText, zoneOf } from './cues.tsx'
import { ExecutionTable, whileMoving } from './executions.tsx'
import { HistoryPanel } from './history.tsx'
import { NextRuns, useSchedulePreview } from './schedule.tsx'
import { fireCalls } from './teach.ts'

type Open = 'fire' | 'pause' | 'delete'

/** Milliseconds to the next read while an execution is about to change, or to just after the next run. */
const whileRunning = ({ executions, next_run }: CueDetail): number | undefined => {
  const left = next_run ? Date.parse(next_run) - serviceNow() : Number.NaN
  return whileMoving(executions) ?? (left > -60_000 ? Math.max(left + 300, 1000) : undefined)
}

export const CuePage = ({ id }: { id: string }) => {
  const read = useRead<CueDetail>(`/v1/cues/${encodeURIComponent(id)}`, {}, { every: whileRunning })
  const { data: cue } = read
  const [open, setOpen] = useState<Open>()
  const mayWrite = useMay('write')
  const isActive = cue?.status === 'active'
  const isPaused = cue?.status === 'paused'
  const resume = () => act(() => post(`/v1/cues/${id}/resume`, {}), 'The cue runs again').then(read.reload)
  useRows()
  useShortcuts(
    mayWrite && cue
      ? [
          { key: 'f', text: 'Fire now', run: () => setOpen('fire') },
          { key: 'p', text: isPaused ? 'Resume' : 'Pause', run: () => (isPaused ? void resume() : isActive && setOpen('pause')) },
          { key: 'i', text: 'Edit', run: () => go(to(`/cues/${id}/edit`)) }
        ]
      : []
  )
  if (!cue)
    return (
      <Page title="Cue" above={<Above path="/cues" name="Cues" />}>
        {read.failure ? <Problem failure={read.failure} /> : <Loading />}
      </Page>
    )
  const close = () => setOpen(undefined)
  return (
    <Page
      title={cue.name}
      above={<Above path="/cues" name="Cues" />}
      read={read}
      about={
        <>
          <CueStatus cue={cue} />
          <span class="mono id">
            {cue.key ?? cue.id}
            <Copy text={cue.key ?? cue.id} label="Copy the id" />
          </span>
          {cue.tags.map(tag => (
            <Tag key={tag} label={tag} href={to('/cues', { tag })} />
          ))}
          {cue.managed_by && <Tag label={`set ${cue.managed_by}`} href={to('/cues', { set: cue.managed_by })} />}
        </>
      }
      actions={
        mayWrite && (
          <>
            <Button label="Fire now" icon="play" kind="main" shortcut="f" onClick={() => setOpen('fire')} />
            {isActive && <Button label="Pause" icon="pause" shortcut="p" onClick={() => setOpen('pause')} />}
            {isPaused && <Button label="Resume" icon="play" shortcut="p" onClick={() => void resume()} />}
            <ButtonLink label="Edit" icon="edit" href={to(`/cues/${id}/edit`)} />
            <Button label="Delete" icon="trash" kind="quiet" iconOnly onClick={() => setOpen('delete')} />
          </>
        )
      }
    >
      <Problem failure={read.failure} />
      {isPaused && (
        <p class={`problem ${cue.paused_by === 'user' ? 'warn' : 'bad'}`}>
          <span>
            <strong>{'Paused. '}</strong>
            {pauseText(cue).replace(/[^.!?]$/, '$&.')}
            {cue.paused_at && (
              <>
                {' Since '}
                <When at={cue.paused_at} zone={zoneOf(cue)} only="absolute" />.
              </>
            )}
            {cue.paused_until && (
              <>
                {' Until '}
                <When at={cue.paused_until} zone={zoneOf(cue)} only="absolute" />.
              </>
            )}
          </span>
        </p>
      )}
      {cue.description && <p class="lead">{cue.description}</p>}
      <div class="columns">
        <Main cue={cue} />
        <Side cue={cue} />
      </div>
      {open === 'fire' && <FireDialog cue={cue} onClose={close} onDone={read.reload} />}
      {open === 'pause' && <PauseDialog cue={cue} onClose={close} onDone={read.reload} />}
      {open === 'delete' && <DeleteDialog cue={cue} onClose={close} />}
    </Page>
  )
}

const Main = ({ cue }: { cue: CueDetail }) => {
  const me = useMe()
  return (
    <div class="stack">
      <Panel
        title="Recent executions"
        flush
        actions={
          cue.execution_total > 0 && (
            <a href={to('/executions', { cue_id: cue.id })}>{`All ${counted(cue.execution_total, 'execution')}`}</a>
          )
        }
      >
        {cue.executions.length > 0 ? (
          <ExecutionTable executions={cue.executions} ofOneCue zone={zoneOf(cue)} />
        ) : (
          <Empty title="No executions yet" text="Wait for its next run, or fire it now:" calls={fireCalls(me, cue.id)} />
        )}
      </Panel>
      {cue.executions.length > 1 && (
        <Panel title="Duration and lateness">
          <Durations cueId={cue.id} />
        </Panel>
      )}
      <HistoryPanel cue={cue} />
    </div>
  )
}

const Side = ({ cue }: { cue: CueDetail }) => {
  const zone = zoneFor(useZone(), zoneOf(cue))
  const preview = useSchedulePreview(cue.schedule, 10, cue.next_run)
  const { delivery, retry, on_failure, verification, alerts } = cue
  const waits = retry.backoff_minutes.slice(0, retry.max_attempts - 1)
  return (
    <div class="stack">
      <Panel title="Schedule">
        <p class="words">{preview.data?.description ?? ''}</p>
        <ScheduleText cue={cue} />
        {cue.status === 'active' && preview.data && <NextRuns preview={preview.data} zone={zone} />}
        {zone !== localZone() && <p class="hint">{`Times are in ${zone}; your zone is ${localZone()}.`}</p>}
      </Panel>
      <Panel title="Delivery">
        <Facts
          items={[
            ['Transport', cue.transport],
            ['Callback', cue.callback.url && <span class="mono break">{`${cue.callback.method} ${cue.callback.url}`}</span>],
            ['Headers', Object.keys(cue.callback.headers).join(', ')],
            ['Attempts', waits.length > 0 ? `${retry.max_attempts}, after ${waits.join(', ')} min` : retry.max_attempts],
            ['Timeout', delivery && `${delivery.timeout_seconds} s`],
            ['Awaits an outcome', delivery?.await_outcome ? `within ${duration(delivery.outcome_deadline_seconds * 1000)}` : null],
            ['Verification', verification?.mode.replaceAll('_', ' ')],
            ['Overlap', cue.overlap === 'allow' ? null : cue.overlap.replaceAll('_', ' ')],
            ['Completed', cue.completed_reason?.replaceAll('_', ' ')],
            ['After an outage', cue.catch_up.replaceAll('_', ' ')],
            ['Alerts after', alerts && `${counted(alerts.consecutive_failures, 'failure')} in a row`],
            [
              'On failure',
              [
                on_failure.email && 'mail',
                on_failure.webhook && 'webhook',
                on_failure.pause && 'pause',
                on_failure.pause_after && `pause after ${on_failure.pause_after}`
              ]
                .filter(Boolean)
                .join(', ') || 'nothing'
            ],
            ['Runs so far', cue.run_count.toLocaleString('en')],
            ['Version', cue.version],
            ['Created', <When at={cue.created_at} only="absolute" />]
          ]}
        />
      </Panel>
      <Panel title="Payload">
        <Code text={JSON.stringify(cue.payload, null, 2)} label="payload" />
      </Panel>
      <OtherMembers cue={cue} />
    </div>
  )
}

type Members = Record<string, unknown> & { cron?: string; at?: string; timezone: string; exclude_calendars?: string[] }
const ScheduleText = ({ cue: { schedule } }: { cue: CueDetail }) => {
  const { cron, at, timezone, exclude_calendars, type: _, ...others } = schedule as Members
  return (
    <Facts
      items={[
        ['Cron', cron && <code>{cron}</code>],
        ['At', at && <When at={at} zone={timezone} only="absolute" />],
        ['Zone', timezone],
        [
          'Calendars',
          exclude_calendars?.map((name, n) => [
            n > 0 && ', ',
            <a key={name} href={to(`/calendars/${encodeURIComponent(name)}`)}>
              {name}
            </a>
          ])
        ],
        ...Object.entries(others).map(([name, value]): [string, string] => [
          name.replaceAll('_', ' '),
          typeof value === 'string' ? value : JSON.stringify(value)
        ])
      ]}
    />
  )
}

const known = new Set(
  `id name key description tags managed_by status paused_at paused_by pause_reason paused_until transport schedule callback payload retry on_failure delivery
   alerts catch_up overlap completed_reason verification next_run next_slot last_run run_count fired_count version warning created_at updated_at executions execution_total missed`.split(
    /\s+/
  )
)
/** Members of a newer API. */
const OtherMembers = ({ cue }: { cue: CueDetail }) => {
  const others = Object.entries(cue).filter(([name, value]) => !known.has(name) && value !== null && value !== undefined)
  if (others.length === 0) return null
  return (
    <Panel title="Further settings">
      <Facts
        items={others.map(([name, value]): [string, string] => [
          name.replaceAll('_', ' '),
          typeof value === 'string' ? value : JSON.stringify(value)
        ])}
      />
    </Panel>
  )
}
