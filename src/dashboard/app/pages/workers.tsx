/** Workers and the tasks that they handle. */
import type { Workers as Answer, Executions, Overview } from '../../../client/types.ts'
import { call } from '../api.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, count, counted, Empty, PageLink, Tags } from '../ui/basics.tsx'
import { askToRemove } from '../ui/dialog.tsx'
import { SEARCH_TO } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { workerCalls } from './teach.ts'

const tones = { active: 'good', stale: 'warn', dead: 'bad' } as const

const waitingColumns: Column<Overview['waiting'][number]>[] = [
  ['Task', row => <PageLink kind="mono name" href={to(`/executions/${row.execution_id}`)} text={row.task ?? 'no task'} />, 'cell-main'],
  ['Waiting', ({ waiting }) => counted(waiting, 'execution'), 'bare'],
  ['Since', ({ since }) => <When at={since} only="relative" />],
  ['Worker', ({ has_worker }) => <Badge tone={has_worker ? 'good' : 'bad'}>{has_worker ? 'handled' : 'no live worker'}</Badge>, 'bare']
]

/** The executions that a worker has claimed, among the newest that run. */
const Running = ({ executions }: { executions: Executions['executions'] }) => {
  const oldest = executions.at(-1)
  if (!oldest) return <span class="soft">none</span>
  return (
    <>
      <a href={to('/executions', { worker_id: oldest.claimed_by_worker!, status: 'delivering' })}>{count(executions.length)}</a>
      <span class="soft">, oldest since</span> <When at={oldest.claimed_at} only="relative" />
    </>
  )
}

const columnsFor = (running: Executions['executions'], remove: false | ((worker: string) => void)): Column<Answer['workers'][number]>[] => [
  ['Worker', ({ worker_id }) => <PageLink href={to('/executions', { worker_id })} text={worker_id} />, 'cell-main'],
  ['Tasks', ({ handlers }) => (handlers.length === 0 ? <span class="soft">any</span> : <Tags labels={handlers} />), 'bare'],
  ['Running', ({ worker_id }) => <Running executions={running.filter(({ claimed_by_worker }) => claimed_by_worker === worker_id)} />],
  [
    'Last heartbeat',
    ({ heartbeat_status, last_heartbeat }) => (
      <>
        <Badge tone={tones[heartbeat_status]}>{heartbeat_status}</Badge> <When at={last_heartbeat} only="relative" />
      </>
    ),
    'bare'
  ],
  ['Since', ({ registered_since }) => <When at={registered_since} only="absolute" />],
  [
    '',
    ({ worker_id }) =>
      remove && <Button label={`Remove ${worker_id}`} icon="trash" kind="quiet" iconOnly onClick={() => remove(worker_id)} />,
    'cell-actions'
  ]
]

const text = 'A worker claims the executions of cues with the worker transport. It needs no public address. Start one:'

export const Workers = () => {
  const read = useRead<Answer>('/v1/workers', { limit: 100 })
  const waiting = useRead<Overview>('/v1/overview').data?.waiting ?? []
  const query = { status: 'delivering', limit: 100, count_to: 0, search_to: SEARCH_TO }
  const running = useRead<Executions>('/v1/executions', query).data?.executions ?? []
  const me = useMe()
  const mayRemove = useMay('worker')
  const remove = (worker: string) =>
    askToRemove({
      title: 'Remove the worker',
      label: 'Remove',
      text: 'Its claims are released, so that other workers can take them. A live worker reappears with its next heartbeat.',
      done: 'Removed',
      action: () => call('DELETE', `/v1/workers/${encodeURIComponent(worker)}`).then(read.reload)
    })
  return (
    <Page title="Workers" read={read}>
      {({ workers, total }) => (
        <div class="stack">
          {waiting.length > 0 && <List title="Waiting tasks" columns={waitingColumns} rows={waiting} />}
          {workers.length === 0 ? (
            <Empty title="No workers" text={text} calls={workerCalls(me, waiting[0]?.task ?? 'report')} />
          ) : (
            <List
              title={counted(total, 'worker')}
              columns={columnsFor(running, mayRemove && remove)}
              rows={workers}
              id={({ worker_id }) => worker_id}
            />
          )}
        </div>
      )}
    </Page>
  )
}
