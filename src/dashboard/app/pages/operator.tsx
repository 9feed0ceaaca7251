/** The whole service, for its operator: holds, questions, engines, waiting work, connections, partitions, accounts, migrations. */
import { useState } from 'preact/hooks'
import type { Operator } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useRead } from '../query.ts'
import { duration, useNow } from '../time.ts'
import { Badge, Button, bytes, Code, count, counted, Empty, Loading, Panel, Problem, type Tone } from '../ui/basics.tsx'
import { useAction } from '../ui/dialog.tsx'
import { TextField } from '../ui/form.tsx'
import { Page } from '../ui/frame.tsx'
import { List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { AccountLimits } from './account-limits.tsx'
import { Figure } from './attention.tsx'
import { Holds, OnCall } from './on-call.tsx'

type Cell = Operator['cells'][number]
type Figures = NonNullable<Cell['figures']>

export const OperatorPage = () => {
  const read = useRead<Operator>('/v1/operator')
  const { data, failure } = read
  if (failure?.status === 403)
    return (
      <Page title="Operator">
        <Unlock onDone={() => location.reload()} />
      </Page>
    )
  return (
    <Page title="Operator" read={read} about={data && `Figures on the whole service, from a replica of release ${data.version}.`}>
      <Problem failure={failure} />
      {!data ? (
        !failure && <Loading lines={8} />
      ) : (
        <div class="stack">
          <Holds operator={data} onDone={read.reload} />
          <OnCall questions={data.questions} />
          <AccountLimits />
          {data.cells.map(cell => (
            <div key={cell.cell} class="stack">
              {data.cells.length > 1 && <h2>{`Cell ${cell.cell}`}</h2>}
              <CellFigures cell={cell} />
            </div>
          ))}
        </div>
      )}
    </Page>
  )
}

const Unlock = ({ onDone }: { onDone: () => void }) => {
  const [token, setToken] = useState('')
  const { busy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    if (await run(() => post('/v1/operator/session', { operator_token: token.trim() }))) onDone()
  }
  return (
    <Panel title="Only for the operator of this service">
      <form onSubmit={submit}>
        <TextField
          label="Operator token"
          type="password"
          required
          mono
          value={token}
          onInput={setToken}
          error={failure?.message}
          hint="The value of OPERATOR_TOKEN. This browser may then read the figures for 12 hours; it does not keep the token."
        />
        <div class="actions left">
          <Button label="Show the figures" kind="main" type="submit" busy={busy} />
        </div>
      </form>
      <p class="hint above-code">No token yet? Start the service with one, of at least 16 characters:</p>
      <Code label="shell" text="OPERATOR_TOKEN=$(openssl rand -hex 32) npm start" />
    </Panel>
  )
}

const tones = { healthy: 'good', degraded: 'warn', down: 'bad' } as const

const CellFigures = ({ cell: { status, reason, figures } }: { cell: Cell }) => {
  const now = useNow()
  if (!figures) return <Empty title="The database does not respond" text={`${reason ?? 'It is unreachable.'} This page tries again.`} />
  const live = figures.engines.filter(({ state }) => state === 'live')
  const latest = Math.max(...live.map(({ lateness_ms }) => lateness_ms ?? -1))
  const oldest = figures.queues
    .filter(({ queue, oldest }) => oldest && (queue === 'due' || queue === 'pending'))
    .map(({ oldest }) => oldest!)
  const waitingMs = oldest.length > 0 ? Math.max(now - Math.min(...oldest.map(at => Date.parse(at))), 0) : 0
  const open = figures.connections.reduce((sum, one) => sum + one.open, 0)
  const used = open / figures.connection_limit
  return (
    <>
      <dl class="figures five">
        <Figure name="Service" value={status} note={reason ?? counted(live.length, 'live engine')} tone={tones[status]} />
        <Figure
          name="Lateness"
          value={latest < 0 ? '–' : duration(latest)}
          note="latest scheduled delivery"
          tone={latest < 0 ? undefined : latest < 1000 ? 'good' : latest < 10_000 ? 'warn' : 'bad'}
        />
        <Figure
          name="Oldest due"
          value={waitingMs < 1000 ? 'none' : duration(waitingMs)}
          note="cue or webhook attempt"
          tone={waitingMs < 5000 ? 'good' : waitingMs < 60_000 ? 'warn' : 'bad'}
        />
        <Figure
          name="Connections"
          value={count(open)}
          note={`of ${count(figures.connection_limit)} that the server allows`}
          tone={used < 0.7 ? 'good' : used < 0.9 ? 'warn' : 'bad'}
        />
        <Figure name="Database" value={bytes(figures.size_bytes)} note={`PostgreSQL ${figures.postgres}, release ${figures.release}`} />
      </dl>
      <Engines engines={figures.engines} />
      <Work figures={figures} />
      <Accounts accounts={figures.accounts} />
      <Partitions partitions={figures.partitions} />
      <Connections connections={figures.connections} />
      <Migrations figures={figures} />
    </>
  )
}

const engineTones = { live: 'good', silent: 'bad', stopped: 'quiet' } as const
const Engines = ({ engines }: Pick<Figures, 'engines'>) => (
  <List
    title="Engines"
    columns={['Engine', 'State', 'Share', 'Lateness', 'Open deliveries', 'Last seen']}
    numbers={['Share', 'Lateness', 'Open deliveries']}
    none="No engine has run yet. A replica has one unless ROLES says otherwise."
    rows={engines.map(({ id, name, version, state, share, lateness_ms, open_deliveries, last_seen_at }) => [
      [<span class="mono">{name ?? id.slice(-12)}</span>, <div class="under">{`release ${version}`}</div>],
      <Badge tone={engineTones[state] as Tone}>{state}</Badge>,
      `${Math.round(share * 100)}%`,
      lateness_ms === null ? '–' : duration(lateness_ms),
      count(open_deliveries),
      <When at={last_seen_at} only="relative" />
    ])}
  />
)

const kinds: Record<string, string> = {
  due: 'due cues',
  pending: 'webhooks due',
  retrying: 'retries',
  delivering: 'webhooks being sent',
  pending_outcome: 'awaiting their outcome',
  pending_worker: 'waiting for a worker',
  claimed: 'claimed by workers',
  deferred: 'deferred',
  queued: 'queued behind another run'
}
/** Counted up to 10,000. */
const waitingText = (waiting: number) => `${count(waiting)}${waiting >= 10_000 ? '+' : ''}`

const Work = ({ figures: { queues, jobs } }: { figures: Figures }) => (
  <List
    title="Waiting work"
    columns={['Kind', 'Number', 'Oldest']}
    numbers={['Number']}
    none="Nothing is waiting."
    rows={[
      ...queues.flatMap(({ queue, waiting, oldest }) =>
        waiting === 0 ? [] : [[kinds[queue] ?? queue, waitingText(waiting), <When at={oldest} only="relative" />]]
      ),
      ...jobs.flatMap(({ queue, waiting }) => (waiting === 0 ? [] : [[`background jobs: ${queue}`, waitingText(waiting), '–']]))
    ]}
  />
)

const Accounts = ({ accounts }: Pick<Figures, 'accounts'>) => (
  <List
    title="Accounts with the most executions this month"
    columns={['Account', 'Plan', 'Executions', 'Of its limit', 'Cues']}
    numbers={['Executions', 'Of its limit', 'Cues']}
    none="Nothing has run this month."
    rows={accounts.map(({ account_id, email, plan, executions_used, executions_per_month, cues_used, cues }) => [
      [<span class="name">{email}</span>, <div class="under mono">{account_id}</div>],
      <Badge tone="info">{plan}</Badge>,
      count(executions_used),
      executions_per_month === null ? '–' : `${count(Math.round((executions_used / Math.max(executions_per_month, 1)) * 100))}%`,
      `${count(cues_used)}${cues_used >= 1000 ? '+' : ''}${cues === null ? '' : ` of ${count(cues)}`}`
    ])}
  />
)

const Partitions = ({ partitions }: Pick<Figures, 'partitions'>) => {
  const months = [...new Set(partitions.map(({ month }) => month))]
  return (
    <List
      title="Partitions"
      columns={['Month', 'Executions', 'Size with indexes', 'Attempts', 'Their size']}
      numbers={['Executions', 'Size with indexes', 'Attempts', 'Their size']}
      none="There are none yet."
      rows={months.map(month => [
        month,
        ...['executions', 'attempts'].flatMap(table => {
          const of = partitions.find(one => one.table === table && one.month === month)
          return of ? [of.rows === null ? 'not counted' : `about ${count(of.rows)}`, bytes(of.size_bytes)] : ['–', '–']
        })
      ])}
    />
  )
}

const Connections = ({ connections }: Pick<Figures, 'connections'>) => (
  <List
    title="Database connections"
    columns={['Application', 'Open', 'Active']}
    numbers={['Open', 'Active']}
    none=""
    rows={connections.map(({ name, open, active }) => [name, count(open), count(active)])}
  />
)

const Migrations = ({ figures: { migrations, migration_count } }: { figures: Figures }) => (
  <List
    title={`Migrations: the latest of ${count(migration_count)}`}
    columns={['Migration', 'Applied']}
    none=""
    rows={migrations.map(({ name, applied_at }) => [<span class="mono">{name}</span>, <When at={applied_at} />])}
  />
)
