/** Workers and the tasks that they handle. */

import { useState } from 'preact/hooks'
import type { Workers as Answer, Overview } from '../../../client/types.ts'
import { call } from '../api.ts'

import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, counted, Empty, Loading, Panel, Problem, Tag } from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Page } from '../ui/frame.tsx'
import { When } from '../ui/when.tsx'
import { workerCalls } from './teach.ts'

const tones = { active: 'good', stale: 'warn', dead: 'bad' } as const

export const Workers = () => {
  const read = useRead<Answer>('/v1/workers', { limit: 100 })
  const waiting = useRead<Overview>('/v1/overview').data?.waiting ?? []
  const me = useMe()
  const mayRemove = useMay('worker')
  const [removing, remove] = useState<string>()
  const { data } = read
  return (
    <Page title="Workers" read={read}>
      <Problem failure={read.failure} />
      {waiting.length > 0 && (
        <Panel title="Waiting tasks" flush>
          <table class="table">
            <thead>
              <tr>
                {['Task', 'Waiting', 'Since', 'Worker'].map(name => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {waiting.map(one => (
                <tr key={one.task}>
                  <td class="cell-main">
                    <a class="mono name" href={to(`/executions/${one.execution_id}`)}>
                      {one.task ?? 'no task'}
                    </a>
                  </td>
                  <td>{counted(one.waiting, 'execution')}</td>
                  <td>
                    <When at={one.since} only="relative" />
                  </td>
                  <td>
                    <Badge tone={one.has_worker ? 'good' : 'bad'}>{one.has_worker ? 'handled' : 'no live worker'}</Badge>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      {!data ? (
        !read.failure && <Loading />
      ) : data.workers.length === 0 ? (
        <Empty
          title="No workers"
          text="A worker claims the executions of cues with the worker transport. It needs no public address. Start one:"
          calls={workerCalls(me, waiting[0]?.task ?? 'report')}
        />
      ) : (
        <Panel title={counted(data.total, 'worker')} flush>
          <table class="table">
            <thead>
              <tr>
                {['Worker', 'Tasks', 'Last heartbeat', 'Since', ''].map(name => (
                  <th key={name} scope="col">
                    {name || <span class="unseen">Actions</span>}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {data.workers.map(({ worker_id, handlers, heartbeat_status, last_heartbeat, registered_since }) => (
                <tr key={worker_id} data-row>
                  <td class="cell-main">
                    <a class="name" href={to('/executions', { worker_id })}>
                      {worker_id}
                    </a>
                  </td>
                  <td>
                    <div class="tags">
                      {handlers.length === 0 ? <span class="soft">any</span> : handlers.map(task => <Tag key={task} label={task} />)}
                    </div>
                  </td>
                  <td>
                    <Badge tone={tones[heartbeat_status]}>{heartbeat_status}</Badge> <When at={last_heartbeat} only="relative" />
                  </td>
                  <td>
                    <span class="phone-only">{'since '}</span>
                    <When at={registered_since} only="absolute" />
                  </td>
                  <td class="cell-actions">
                    {mayRemove && (
                      <Button label={`Remove ${worker_id}`} icon="trash" kind="quiet" iconOnly onClick={() => remove(worker_id)} />
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      {removing !== undefined && (
        <Confirm
          title="Remove the worker"
          label="Remove"
          kind="danger"
          onClose={() => remove(undefined)}
          done="Removed"
          action={() => call('DELETE', `/v1/workers/${encodeURIComponent(removing)}`).then(read.reload)}
        >
          <p>Its claims are released, so that other workers can take them. A live worker reappears with its next heartbeat.</p>
        </Confirm>
      )}
    </Page>
  )
}
