/** Operations on many cues or executions: their progress, and what failed. */
import type { Operation, OperationDetail, Operations } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useRows } from '../keys.ts'
import { optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, count, counted, Empty, Facts, Panel } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { FilterSelect, Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { operationCalls } from './teach.ts'

const tones = { running: 'info', completed: 'good', aborted: 'warn' } as const
const Status = ({ of: { status } }: { of: Operation }) => <Badge tone={tones[status]}>{status}</Badge>

const Progress = ({ of: { total, done } }: { of: Operation }) => (
  <div class="row progress">
    <meter min={0} max={Math.max(total, 1)} value={done} aria-label={`${done} of ${total} done`} />
    <span class="soft">{`${count(done)} of ${count(total)}`}</span>
  </div>
)

const titleOf = ({ name, type, total }: Operation): string =>
  name ?? `${type[0]!.toUpperCase()}${type.slice(1)}: ${counted(total, 'target')}`

const columns: Column<Operation>[] = [
  [
    'Operation',
    of => (
      <a class="name" href={to(`/operations/${of.id}`)}>
        {titleOf(of)}
      </a>
    ),
    'cell-main'
  ],
  ['Status', of => <Status of={of} />, 'bare'],
  ['Progress', of => <Progress of={of} />, 'bare'],
  ['Failed', ({ failed }) => count(failed), 'number'],
  ['Started', ({ created_at }) => <When at={created_at} />]
]

export const OperationsPage = () => {
  const { type, status } = usePlace().query
  const read = useRead<Operations>('/v1/operations', { type, status, limit: 50, offset: useOffset() })
  const me = useMe()
  useRows()
  const empty = (
    <Empty
      title="No operations"
      text="An operation acts on many cues or executions in the background. Start one from the rows selected in a list, or with a call:"
      calls={operationCalls(me)}
    />
  )
  const filters = (
    <>
      <FilterSelect label="Any type" name="type" options={optionsOf('operationType')} />
      <FilterSelect label="Any status" name="status" options={optionsOf('operationStatus')} />
    </>
  )
  return (
    <Page title="Operations" read={read} filters={filters}>
      {data => <Paged page={data} rows={data.operations} columns={columns} caption="Operations" noun="operation" empty={empty} />}
    </Page>
  )
}

const failureColumns: Column<OperationDetail['errors'][number]>[] = [
  [
    'Target',
    ({ target }) => (
      <a class="mono name" href={to(target.startsWith('cue_') ? `/cues/${target}` : `/executions/${target}`)}>
        {target}
      </a>
    ),
    'cell-main'
  ],
  ['Why', ({ message }) => message, 'bare']
]

export const OperationPage = ({ id }: { id: string }) => {
  const every = ({ status }: OperationDetail) => (status === 'running' ? 2000 : undefined)
  const read = useRead<OperationDetail>(`/v1/operations/${encodeURIComponent(id)}`, {}, { every })
  const mayAbort = useMay('write') && read.data?.status === 'running'
  const abort = () => act(() => post(`/v1/operations/${id}/abort`), 'Aborted').then(read.reload)
  return (
    <Page
      title={read.data ? titleOf(read.data) : 'Operation'}
      above={{ path: '/operations', name: 'Operations' }}
      read={read}
      about={read.data && <Status of={read.data} />}
      actions={mayAbort && <Button label="Abort" icon="stop" kind="danger" onClick={() => void abort()} />}
    >
      {data => (
        <div class="stack">
          <Panel title="Progress">
            <Progress of={data} />
            <Facts
              items={[
                ['Succeeded', count(data.succeeded)],
                ['Failed', count(data.failed)],
                ['Skipped', `${count(data.skipped)}${data.skipped ? ': changed or deleted since, or already in the wanted state' : ''}`],
                ['Started', <When at={data.created_at} />],
                ['Ended', data.ended_at && <When at={data.ended_at} />],
                ['By', <span class="mono break">{data.created_by}</span>]
              ]}
            />
          </Panel>
          {data.errors.length > 0 && (
            <List
              title={data.errors.length === 100 ? 'The first 100 failures' : counted(data.errors.length, 'failure')}
              columns={failureColumns}
              rows={data.errors}
            />
          )}
        </div>
      )}
    </Page>
  )
}
