/** Operations on many cues or executions: their progress, and what failed. */
import type { Operation, OperationDetail, Operations } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { serviceUrl } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { Badge, Button, count, counted, Empty, Facts, Loading, Panel, Problem } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { Above, Page } from '../ui/frame.tsx'
import { FilterSelect, Filters, OffsetList, useOffset } from '../ui/list.tsx'
import { When } from '../ui/when.tsx'

const tones = { running: 'info', completed: 'good', aborted: 'warn' } as const

const Progress = ({ of }: { of: Operation }) => (
  <div class="progress">
    <meter min={0} max={Math.max(of.total, 1)} value={of.done} aria-label={`${of.done} of ${of.total} done`} />
    <span class="soft">{`${count(of.done)} of ${count(of.total)}`}</span>
  </div>
)

const titleOf = ({ name, type, total }: Operation): string =>
  name ?? `${type[0]!.toUpperCase()}${type.slice(1)}: ${counted(total, 'target')}`

export const OperationsPage = () => {
  const { query } = usePlace()
  const read = useRead<Operations>('/v1/operations', {
    type: query.get('type') ?? undefined,
    status: query.get('status') ?? undefined,
    limit: 50,
    offset: useOffset()
  })
  useRows()
  const options = (values: string[]) => values.map(value => ({ value, label: value }))
  return (
    <Page title="Operations" read={read}>
      <Filters>
        <FilterSelect
          label="Any type"
          name="type"
          options={options(['replay', 'cancel', 'dismiss', 'pause', 'resume', 'fire', 'delete', 'backfill'])}
        />
        <FilterSelect label="Any status" name="status" options={options(['running', 'completed', 'aborted'])} />
      </Filters>
      <OffsetList<Operations>
        read={read}
        caption="Operations"
        columns={['Operation', 'Status', 'Progress', 'Failed', 'Started']}
        noun="operation"
        empty={
          <Empty
            title="No operations"
            text="An operation acts on many cues or executions in the background. Start one from the rows selected in a list, or with a call:"
            calls={[
              {
                name: 'curl',
                code: `curl ${serviceUrl}/v1/operations -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\\n  -d '{"type": "replay", "filter": {"dead": true}, "dry_run": true}'`
              },
              { name: 'pgcue', code: 'pgcue replay --status failed --since 2h --dry-run' },
              {
                name: 'TypeScript',
                code: "await client.call('POST', '/v1/operations', { body: { type: 'replay', filter: { dead: true }, dry_run: true } })"
              }
            ]}
          />
        }
        rows={({ operations }) =>
          operations.map(of => (
            <tr key={of.id} data-row>
              <td class="cell-main">
                <a class="name" href={to(`/operations/${of.id}`)}>
                  {titleOf(of)}
                </a>
              </td>
              <td>
                <Badge tone={tones[of.status]}>{of.status}</Badge>
              </td>
              <td>
                <Progress of={of} />
              </td>
              <td>
                {count(of.failed)}
                <span class="phone-only">{' failed'}</span>
              </td>
              <td>
                <When at={of.created_at} />
              </td>
            </tr>
          ))
        }
      />
    </Page>
  )
}

export const OperationPage = ({ id }: { id: string }) => {
  const every = ({ status }: OperationDetail) => (status === 'running' ? 2000 : undefined)
  const read = useRead<OperationDetail>(`/v1/operations/${encodeURIComponent(id)}`, {}, { every })
  const mayWrite = useMay('write')
  const { data } = read
  const above = <Above path="/operations" name="Operations" />
  if (!data)
    return (
      <Page title="Operation" above={above}>
        {read.failure ? <Problem failure={read.failure} /> : <Loading />}
      </Page>
    )
  const abort = () => act(() => post(`/v1/operations/${id}/abort`), 'Aborted').then(read.reload)
  return (
    <Page
      title={titleOf(data)}
      above={above}
      read={read}
      about={<Badge tone={tones[data.status]}>{data.status}</Badge>}
      actions={mayWrite && data.status === 'running' && <Button label="Abort" icon="stop" kind="danger" onClick={() => void abort()} />}
    >
      <Problem failure={read.failure} />
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
          <Panel title={data.errors.length === 100 ? 'The first 100 failures' : counted(data.errors.length, 'failure')} flush>
            <table class="table">
              <thead>
                <tr>
                  {['Target', 'Why'].map(name => (
                    <th key={name} scope="col">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {data.errors.map(({ target, message }) => (
                  <tr key={target}>
                    <td class="cell-main">
                      <a class="mono name" href={to(target.startsWith('cue_') ? `/cues/${target}` : `/executions/${target}`)}>
                        {target}
                      </a>
                    </td>
                    <td>{message}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Panel>
        )}
      </div>
    </Page>
  )
}
