/** The whole service, for its operator: holds, questions, engines, waiting work, connections, partitions, accounts, migrations. */
import type { Operator } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useRead } from '../query.ts'
import { duration, useNow } from '../time.ts'
import { Badge, bytes, Code, count, counted, Empty, Figure, isNarrow, Panel, type Tone } from '../ui/basics.tsx'
import { Form } from '../ui/dialog.tsx'
import { TextField, useText } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { List, Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { AccountLimits, accountColumns, Holds, OnCall, Rows } from './operator-actions.tsx'

type Cell = Operator['cells'][number]
type Figures = NonNullable<Cell['figures']>

export const OperatorPage = () => {
  const read = useRead<Operator>('/v1/operator')
  const { data, failure } = read
  if (failure?.status === 403)
    return (
      <Page title="Operator">
        <Unlock />
      </Page>
    )
  return (
    <Page title="Operator" read={read} about={data && `Figures on the whole service, from a replica of release ${data.version}.`}>
      {data => (
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

const Unlock = () => {
  const token = useText()
  const unlock = () => post('/v1/operator/session', { operator_token: token.value.trim() })
  return (
    <Panel title="Only for the operator of this service">
      <Form label="Show the figures" action={unlock} onDone={() => location.reload()}>
        <TextField
          label="Operator token"
          type="password"
          required
          mono
          {...token}
          hint="The value of OPERATOR_TOKEN. This browser may then read the figures for 12 hours; it does not keep the token."
        />
      </Form>
      <p class="hint">No token yet? Start the service with one, of at least 16 characters:</p>
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
  const open = figures.connections.reduce((sum, { open }) => sum + open, 0)
  const used = open / figures.connection_limit
  return (
    <>
      <dl class="figures">
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
      <details class="panel">
        <summary>{`Database: ${counted(figures.partitions.length, 'partition')}, ${counted(open, 'connection')}, ${counted(figures.migration_count, 'migration')}`}</summary>
        <div class="stack">
          <Partitions partitions={figures.partitions} />
          <Rows question="Database connections" rows={figures.connections} />
          <Rows question="The latest migrations" rows={figures.migrations} />
        </div>
      </details>
    </>
  )
}

const engineTones: Record<string, Tone> = { live: 'good', silent: 'bad', stopped: 'quiet' }
const Engines = ({ engines }: Pick<Figures, 'engines'>) => (
  <List
    title="Engines"
    none="No engine has run yet. A replica has one unless ROLES says otherwise."
    rows={engines}
    columns={[
      [
        'Engine',
        ({ name, id, version }) => [<span class="mono">{name ?? id.slice(-12)}</span>, <div class="under">release {version}</div>],
        'cell-main'
      ],
      ['State', ({ state }) => <Badge tone={engineTones[state]!}>{state}</Badge>],
      ['Share', ({ share }) => `${Math.round(share * 100)}%`, 'number'],
      ['Lateness', ({ lateness_ms }) => (lateness_ms === null ? '–' : duration(lateness_ms)), 'number'],
      ['Open deliveries', ({ open_deliveries }) => count(open_deliveries), 'number'],
      ['Last seen', ({ last_seen_at }) => <When at={last_seen_at} only="relative" />]
    ]}
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
    none="Nothing is waiting."
    rows={[
      ...queues.map(({ queue, ...rest }) => ({ ...rest, name: kinds[queue] ?? queue })),
      ...jobs.map(({ queue, waiting }) => ({ name: `background jobs: ${queue}`, waiting, oldest: null }))
    ].filter(({ waiting }) => waiting > 0)}
    columns={[
      ['Kind', ({ name }) => name, 'cell-main'],
      ['Number', ({ waiting }) => waitingText(waiting), 'number'],
      ['Oldest', ({ oldest }) => <When at={oldest} only="relative" />]
    ]}
  />
)

type Account = Figures['accounts'][number]
const shareText = ({ executions_used, executions_per_month: limit }: Account) =>
  limit === null ? '–' : `${count(Math.round((executions_used / Math.max(limit, 1)) * 100))}%`
const accountsTitle = 'Accounts with the most executions this month'
const Accounts = ({ accounts }: Pick<Figures, 'accounts'>) => (
  <details class="panel" open={!isNarrow()}>
    <summary>{accountsTitle}</summary>
    <Table
      caption={accountsTitle}
      rows={accounts.map(account => ({ ...account, id: account.account_id }))}
      columns={[
        ...accountColumns,
        ['Executions', ({ executions_used }) => count(executions_used), 'number'],
        ['Of its limit', shareText, 'number'],
        [
          'Cues',
          ({ cues_used, cues }) => `${count(cues_used)}${cues_used >= 1000 ? '+' : ''}${cues === null ? '' : ` of ${count(cues)}`}`,
          'number'
        ]
      ]}
    />
  </details>
)

const Partitions = ({ partitions }: Pick<Figures, 'partitions'>) => {
  const of = (table: string, month: string) => partitions.find(partition => partition.table === table && partition.month === month)
  const rows = (table: string, month: string) => {
    const { rows = null } = of(table, month) ?? {}
    return rows === null ? 'not counted' : `about ${count(rows)}`
  }
  const size = (table: string, month: string) => bytes(of(table, month)?.size_bytes ?? 0)
  return (
    <List
      title="Partitions"
      none="There are none yet."
      rows={[...new Set(partitions.map(({ month }) => month))]}
      columns={[
        ['Month', month => month, 'cell-main'],
        ['Executions', month => rows('executions', month), 'number'],
        ['Size with indexes', month => size('executions', month), 'number'],
        ['Attempts', month => rows('attempts', month), 'number'],
        ['Their size', month => size('attempts', month), 'number']
      ]}
    />
  )
}
