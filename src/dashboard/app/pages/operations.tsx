/** Operations on many cues or executions: their progress, and what failed. */
import type { Executions, Operation, OperationDetail, Operations } from '../../../client/types.ts'
import { post } from '../api.ts'
import { optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, count, counted, Empty, Facts, PageLink, Panel } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { FilterSelect, Paged, SEARCH_TO, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { useActorText } from './actor.tsx'
import { ExecutionTable, whileMoving } from './executions.tsx'
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
  ['Operation', of => <PageLink href={to(`/operations/${of.id}`)} text={titleOf(of)} />, 'cell-main'],
  ['Status', of => <Status of={of} />, 'bare'],
  ['Progress', of => <Progress of={of} />, 'bare'],
  ['Failed', ({ failed }) => count(failed), 'number'],
  ['Started', ({ created_at }) => <When at={created_at} />]
]

const text = 'An operation acts on many cues or executions in the background. Start one from the rows selected in a list, or with a call:'

export const OperationsPage = () => {
  const { type, status } = usePlace().query
  const read = useRead<Operations>('/v1/operations', { type, status, limit: 50, offset: useOffset() })
  const me = useMe()
  const empty = <Empty title="No operations" text={text} calls={operationCalls(me)} />
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

const pathOf = (target: string) => (target.startsWith('cue_') ? `/cues/${target}` : `/executions/${target}`)
const failureColumns: Column<OperationDetail['errors'][number]>[] = [
  ['Target', ({ target }) => <PageLink kind="mono name" href={to(pathOf(target))} text={target} />, 'cell-main'],
  ['Why', ({ message }) => message, 'bare']
]

const triggers: Partial<Record<Operation['type'], string>> = { replay: 'replay', fire: 'manual_fire', backfill: 'backfill' }
/** The executions that it made: those of its kind from its start to its end. */
const Made = ({ of: { type, created_at, ended_at } }: { of: Operation }) => {
  const triggered_by = triggers[type]
  const window = { triggered_by, from: created_at, to: ended_at ? new Date(Date.parse(ended_at) + 1000).toISOString() : undefined }
  const query = { ...window, limit: 20, count_to: 0, search_to: SEARCH_TO }
  const read = useRead<Executions>(triggered_by && '/v1/executions', query, { every: ({ executions }) => whileMoving(executions) })
  if (!read.data?.executions.length) return null
  const name = type === 'replay' ? 'replays' : 'executions'
  return (
    <Panel title={`The latest ${name}`} flush actions={<a href={to('/executions', window)}>{`Show the ${name}`}</a>}>
      <ExecutionTable executions={read.data.executions} />
    </Panel>
  )
}

export const OperationPage = ({ id }: { id: string }) => {
  const every = ({ status }: OperationDetail) => (status === 'running' ? 2000 : undefined)
  const read = useRead<OperationDetail>(`/v1/operations/${encodeURIComponent(id)}`, {}, { every })
  const by = useActorText()
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
                ['By', by(data.created_by)]
              ]}
            />
          </Panel>
          <Made of={data} />
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
