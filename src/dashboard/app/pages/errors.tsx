/** Failures grouped by error: what is broken, how often, since when, and for which cues. */
import type { Errors as Answer } from '../../../client/types.ts'
import { useRowShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, count, counted, Empty, Panel } from '../ui/basics.tsx'
import { show } from '../ui/dialog.tsx'
import { useWindow, WindowSelect } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink, StatusBadge } from '../ui/results.tsx'
import { BulkDialog, type BulkType } from '../ui/select.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { errorCalls } from './teach.ts'

type Group = Answer['errors'][number]
const actions: (BulkType & { key: string })[] = [
  { key: 'r', type: 'replay', label: 'Replay', icon: 'replay', does: 'will be replayed as new executions' },
  { key: 'd', type: 'dismiss', label: 'Dismiss', icon: 'check', does: 'will no longer be listed as dead letters' }
]
type Choose = (of: BulkType, group: Group) => void

const Message = ({ group: { error_group, status, http_status, message, latest }, within }: { group: Group; within: string }) => (
  <>
    <a class="name" href={to('/executions', { error_group, within })} title={latest.error_message ?? undefined}>
      {message || 'no message'}
    </a>
    <div class="under">
      <StatusBadge of={{ status, outcome_state: null }} />
      {http_status !== null && <Badge tone="quiet">{`HTTP ${http_status}`}</Badge>}
      <span>
        <a href={to(`/executions/${latest.execution_id}`)}>latest</a> of <CueLink id={latest.cue_id} name={latest.cue_name} />
      </span>
    </div>
  </>
)

const columnsFor = (within: string, choose: Choose | undefined): (Column<Group> | false)[] => [
  ['Error', group => <Message group={group} within={within} />, 'cell-main'],
  ['Count', group => count(group.count), 'number'],
  ['Cues', ({ cues }) => count(cues), 'number'],
  ['First', ({ first_at }) => <When at={first_at} only="relative" />, 'minor'],
  ['Last', ({ last_at }) => <When at={last_at} only="relative" />],
  choose !== undefined && [
    '',
    group => (
      <div class="row">
        {actions.map(of => (
          <Button key={of.type} label={of.label} icon={of.icon} kind="quiet" shortcut={of.key} onClick={() => choose(of, group)} />
        ))}
      </div>
    ),
    'cell-actions'
  ]
]

const text = 'Failures with the same status and message are shown here as one, to replay or dismiss all at once. To read them elsewhere:'

export const Errors = () => {
  const { within, from } = useWindow('7d')
  const read = useRead<Answer>('/v1/errors', { from })
  const me = useMe()
  const mayWrite = useMay('write')
  const choose: Choose = (of, { error_group }) => show(<BulkDialog of={of} target={{ filter: { error_group, from } }} noun="execution" />)
  const shortcuts = actions.map(of => ({ key: of.key, text: `${of.label} the row`, run: (group: Group) => choose(of, group) }))
  useRowShortcuts(read.data?.errors, mayWrite ? shortcuts : [])
  const empty = ({ errors }: Answer) => errors.length === 0 && <Empty title="No errors" text={text} calls={errorCalls(me)} />
  return (
    <Page
      title="Errors"
      read={read}
      instead={empty}
      about="Executions that failed, were missed or timed out, until somebody replays or dismisses them."
      filters={<WindowSelect usual="7d" />}
    >
      {({ errors, groups, total, since }) => (
        <div class="stack">
          <Panel title={`${counted(groups, 'error')} in ${counted(total, 'execution')}`} flush>
            <Table
              caption="Errors"
              kind="errors"
              columns={columnsFor(within, mayWrite ? choose : undefined)}
              rows={errors}
              id={({ error_group }) => error_group}
            />
          </Panel>
          {(Date.parse(since) > Date.parse(from) || groups > errors.length) && (
            <p class="soft">
              {`The ${counted(errors.length, 'error')} with the most executions, since `}
              <When at={since} only="absolute" />.
            </p>
          )}
        </div>
      )}
    </Page>
  )
}
