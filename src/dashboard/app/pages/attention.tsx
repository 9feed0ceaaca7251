/** The first page: what needs a person, what comes next, and how the last day went. */
import type { Overview, Usage } from '../../../client/types.ts'
import { post } from '../api.ts'
import { labelOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { duration, hourTime, localZone, relative, useNow } from '../time.ts'
import { Bars } from '../ui/bars.tsx'
import { Button, ButtonLink, type Children, count, counted, Empty, Figure, Panel, type Tone, waitingApprovals } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink, Legend } from '../ui/results.tsx'
import { When } from '../ui/when.tsx'
import { pauseText } from './cues.tsx'
import { createCueCalls } from './teach.ts'

type Item = { key: string; icon: IconName; tone: Tone; title: Children; text: Children; at: string | null; action?: Children }
const item = (key: string, icon: IconName, tone: Tone, at: string | null, title: Children, text: Children, action: Children): Item => ({
  ...{ key, icon, tone, at, title, text, action }
})
const open = (href: string, label = 'Open') => <ButtonLink label={label} href={href} />

/** The number of runs that wait for approval, if any. */
const waitingFor = (approvals: string): Item[] => {
  const title = approvals === '1' ? 'One run waits for approval' : `${approvals} runs wait for approval`
  const action = open(to('/approvals'), 'Review')
  return approvals ? [item('approvals', 'approve', 'warn', null, title, 'Look at the payload, then approve or reject.', action)] : []
}

/** Everything that needs a person, worst first. */
const itemsOf = (data: Overview, usage: Usage | undefined, approvals: string, mayWrite: boolean, reload: () => void): Item[] => {
  const resume = (id: string) => act(() => post(`/v1/cues/${id}/resume`, {}), 'The cue runs again').then(reload)
  const acknowledge = (id: string) => act(() => post(`/v1/alerts/${id}/acknowledge`), 'Acknowledged').then(reload)
  const pausedIds = new Set(data.paused.map(({ cue_id }) => cue_id))
  const failing = data.failing.filter(({ cue_id }) => !pausedIds.has(cue_id))
  const failingIds = new Set(data.failing.map(({ cue_id }) => cue_id))
  const alerts = data.alerts.filter(
    ({ cue_id, alert_type: type }) =>
      !(type === 'cue_paused' && pausedIds.has(cue_id)) && !(type === 'consecutive_failure' && failingIds.has(cue_id))
  )
  const items = [
    ...data.paused.map(({ cue_id: id, cue_name, reason, paused_by, paused_at }) => {
      const title = [<CueLink id={id} name={cue_name} />, ' was paused by the service']
      const action = mayWrite ? <Button label="Resume" icon="play" onClick={() => void resume(id)} /> : open(to(`/cues/${id}`))
      return item(`paused ${id}`, 'pause', 'bad', paused_at, title, pauseText({ paused_by, pause_reason: reason }), action)
    }),
    ...failing.map(({ cue_id: id, cue_name, failures, error, since, execution_id }) => {
      const title = [<CueLink id={id} name={cue_name} />, failures === 1 ? ' failed' : ` failed ${failures} times in a row`]
      const action = open(to(`/executions/${execution_id}`), 'Show why')
      return item(`failing ${id}`, 'alert', 'bad', since, title, error ?? 'No reason was given.', action)
    }),
    ...waitingFor(approvals),
    ...data.waiting
      .filter(({ has_worker }) => !has_worker)
      .map(({ task, waiting, since }) => {
        const title = [task ? <span class="mono">{task}</span> : 'Executions without a task', ' has no live worker']
        const text = `${counted(waiting, 'execution')} waiting`
        return item(`task ${task}`, 'worker', 'warn', since, title, text, open(to('/workers'), 'Start a worker'))
      }),
    ...data.waiting_for_person.map(({ cue_id, cue_name, execution_id: execution, since }) => {
      const title = [<CueLink id={cue_id} name={cue_name} />, ' is waiting for verification']
      const text = 'Check the reported outcome, then approve or reject it.'
      return item(`verify ${execution}`, 'inbox', 'warn', since, title, text, open(to('/inbox', { execution }), 'Review'))
    }),
    ...alerts.map(({ id, message, severity, alert_type, created_at, cue_id, resolved_at }) => {
      const tone = resolved_at ? 'quiet' : severity === 'critical' || severity === 'high' ? 'bad' : 'warn'
      const text = resolved_at ? 'The cue has succeeded since.' : labelOf('alertType', alert_type)
      const action = mayWrite ? <Button label="Acknowledge" icon="check" onClick={() => void acknowledge(id)} /> : open(to('/alerts'))
      return item(`alert ${id}`, 'alert', tone, created_at, <CueLink id={cue_id} name={message} />, text, action)
    })
  ]
  for (const name of usage ? (['executions', 'cues'] as const) : []) {
    const { used, limit, percent_used } = usage![name]
    if (limit === null || percent_used < 80) continue
    const isOver = percent_used >= 100
    const title = isOver ? `The plan's ${name} are used up` : `${percent_used}% of the plan's ${name} are used`
    const text = `${count(used)} of ${count(limit)}`
    items.push(item(`usage ${name}`, 'usage', isOver ? 'bad' : 'warn', null, title, text, open(to('/usage'), 'Show usage')))
  }
  return items
}

export const Attention = () => {
  const read = useRead<Overview>('/v1/overview')
  const usage = useRead<Usage>('/v1/usage', {}, { repeat: false }).data
  const { value: approvals } = waitingApprovals
  const mayWrite = useMay('write')
  const me = useMe()
  return (
    <Page title="Needs attention" read={read}>
      {data => {
        const items = itemsOf(data, usage, approvals, mayWrite, read.reload)
        const hasRun = data.succeeded + data.failed + data.running > 0
        if (me.active_cues === 0 && usage?.cues.used === 0 && !hasRun && items.length === 0)
          return (
            <Empty
              title="Welcome to pgcue"
              text="Create your first cue, a scheduled task, in the form or with a call, and watch its deliveries here:"
              action={mayWrite ? <ButtonLink label="Create a cue" href={to('/cues/new')} icon="plus" kind="main" /> : undefined}
              calls={createCueCalls(me)}
            />
          )
        return (
          <>
            <Figures data={data} />
            <div class="columns">
              <Items items={items} />
              <div class="stack">
                <Panel title="In the next hour">
                  <Upcoming data={data} />
                </Panel>
                <Panel title="In the last 24 hours">
                  {data.volume.length > 0 ? (
                    <Bars volume={data.volume} label="Executions in the last 24 hours" />
                  ) : (
                    <p class="soft">Nothing ran.</p>
                  )}
                  <Legend />
                </Panel>
              </div>
            </div>
          </>
        )
      }}
    </Page>
  )
}

const Items = ({ items }: { items: Item[] }) => {
  if (items.length === 0)
    return (
      <Panel title="All is well">
        <p class="soft">No cue is failing, nothing is waiting, and no alert is open.</p>
      </Panel>
    )
  return (
    <Panel title={`${items.length} ${items.length === 1 ? 'thing' : 'things'} to look at`} flush>
      <ul>
        {items.map(({ key, icon, tone, title, text, at, action }) => (
          <li key={key} class="item" data-row>
            <span class={`item-icon ${tone}`}>
              <Icon name={icon} size={17} />
            </span>
            <div>
              <p>{title}</p>
              <p class="under">
                {text}
                {at && <When at={at} only="relative" />}
              </p>
            </div>
            {action}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const Figures = ({ data }: { data: Overview }) => {
  const now = useNow()
  const { succeeded, failed, running, lateness_p50_ms, lateness_p99_ms, since, waiting } = data
  const ended = succeeded + failed
  const rate = ended === 0 ? undefined : succeeded / ended
  const oldest = waiting[0]
  const span = Date.parse(since) < now - 86_000_000 ? 'in 24 hours' : `since ${hourTime(since, localZone())}`
  const percent = rate === undefined ? '–' : `${rate === 1 ? '100' : Math.min(rate * 100, 99.9).toFixed(1)}%`
  return (
    <dl class="figures">
      <Figure
        name="Success rate"
        value={percent}
        note={`${count(succeeded)} of ${count(ended)} ${span}`}
        tone={rate === undefined ? undefined : rate > 0.99 ? 'good' : rate > 0.9 ? 'warn' : 'bad'}
      />
      <Figure
        name="Lateness"
        value={lateness_p50_ms === null ? '–' : duration(lateness_p50_ms)}
        note={lateness_p99_ms === null ? 'no scheduled runs' : `median; 99% within ${duration(lateness_p99_ms)}`}
      />
      <Figure name="In progress" value={count(running)} note="sent, claimed or waiting" />
      <Figure
        name="Oldest waiting"
        value={oldest ? relative(oldest.since, now).replace(' ago', '') : 'none'}
        note={oldest ? (oldest.task ?? 'no task') : 'for a worker'}
        tone={oldest && !oldest.has_worker ? 'warn' : undefined}
      />
    </dl>
  )
}

const hourMs = 3_600_000

const Upcoming = ({ data: { upcoming } }: { data: Overview }) => {
  const now = useNow()
  const rows = upcoming.filter(({ next_run }) => Date.parse(next_run) > now - 60_000)
  if (rows.length === 0) return <p class="soft">No cue runs within an hour.</p>
  const x = (share: number) => 4 + Math.min(Math.max(share, 0), 1) * 392
  const anchors = ['start', 'middle', 'middle', 'middle', 'end'] as const
  return (
    <div class="stack">
      <svg class="upcoming" viewBox="0 0 400 44" role="img" aria-label={`${counted(rows.length, 'cue')} in the next hour`}>
        <path d={`M4 26h392${anchors.map((_, n) => `M${x(n / 4)} 21v10`).join('')}`} />
        {anchors.map((anchor, n) => (
          <text key={n} x={x(n / 4)} y={43} text-anchor={anchor}>
            {n === 0 ? 'now' : `${n * 15} min`}
          </text>
        ))}
        {rows.map(({ cue_id, next_run }) => (
          <circle key={cue_id} cx={x((Date.parse(next_run) - now) / hourMs)} cy={26} r={5} />
        ))}
      </svg>
      <ol>
        {rows.slice(0, 6).map(({ cue_id, cue_name, next_run }) => (
          <li key={cue_id} class="split">
            <CueLink id={cue_id} name={cue_name} />
            <When at={next_run} only="relative" isNext />
          </li>
        ))}
        {rows.length > 6 && <li class="soft">{`and ${counted(rows.length - 6, 'other')}`}</li>}
      </ol>
    </div>
  )
}
