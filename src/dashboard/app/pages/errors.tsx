/** Failures grouped by error: what is broken, how often, since when, and for which cues. */
import { useState } from 'preact/hooks'
import type { Errors as Answer } from '../../../client/types.ts'

import { useRows, useShortcuts } from '../keys.ts'
import { useHold, useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, count, counted, Empty, Loading, Panel, Problem } from '../ui/basics.tsx'
import { Page } from '../ui/frame.tsx'
import { Filters } from '../ui/list.tsx'
import { CueLink, StatusBadge } from '../ui/results.tsx'
import { BulkDialog, type BulkType } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { useWindow, WindowSelect } from '../ui/window.tsx'
import { errorCalls } from './teach.ts'

type Group = Answer['errors'][number]
const actions: (BulkType & { key: string })[] = [
  { key: 'r', type: 'replay', label: 'Replay', icon: 'replay', does: 'will be replayed as new executions' },
  { key: 'd', type: 'dismiss', label: 'Dismiss', icon: 'check', does: 'will no longer be listed as dead letters' }
]
type Chosen = { of: BulkType; group: Group }

export const Errors = () => {
  const { within, from } = useWindow('7d')
  const read = useRead<Answer>('/v1/errors', { from })
  const me = useMe()
  const mayWrite = useMay('write')
  const [chosen, choose] = useState<Chosen>()
  const { data } = read
  useRows()
  useHold(chosen !== undefined)
  useShortcuts(
    (mayWrite ? actions : []).map(of => ({
      key: of.key,
      text: `${of.label} the row`,
      run: () => {
        const rows = [...document.querySelectorAll('[data-row]')]
        const group = data?.errors[rows.findIndex(row => row.contains(document.activeElement))]
        if (group) choose({ of, group })
      }
    }))
  )
  return (
    <Page title="Errors" read={read} about="Executions that failed, were missed or timed out, until somebody replays or dismisses them.">
      <Filters>
        <WindowSelect usual="7d" />
      </Filters>
      <Problem failure={read.failure} />
      {!data ? (
        !read.failure && <Loading />
      ) : data.errors.length === 0 ? (
        <Empty
          title="No errors"
          text="Failures with the same status and message are shown here as one, to replay or dismiss all at once. To read them elsewhere:"
          calls={errorCalls(me)}
        />
      ) : (
        <>
          <Panel title={`${counted(data.groups, 'error')} in ${counted(data.total, 'execution')}`} flush>
            <Table
              caption="Errors"
              columns={['Error', 'Count', 'Cues', 'Last', ...(mayWrite ? [''] : [])]}
              kind="errors"
              numbers={['Count', 'Cues']}
            >
              {data.errors.map(group => (
                <Row key={group.error_group} group={group} within={within} choose={mayWrite ? choose : undefined} />
              ))}
            </Table>
          </Panel>
          {(Date.parse(data.since) > Date.parse(from) || data.groups > data.errors.length) && (
            <p class="soft">
              {`The ${counted(data.errors.length, 'error')} with the most executions, since `}
              <When at={data.since} only="absolute" />.
            </p>
          )}
        </>
      )}
      {chosen && (
        <BulkDialog
          of={chosen.of}
          target={{ filter: { error_group: chosen.group.error_group, from } }}
          noun="execution"
          onClose={() => choose(undefined)}
        />
      )}
    </Page>
  )
}

type RowProps = { group: Group; within: string; choose?: (chosen: Chosen) => void }

const Row = ({ group, within, choose }: RowProps) => {
  const { error_group, status, http_status, message, cues, first_at, last_at, latest } = group
  return (
    <tr data-row>
      <td class="cell-main">
        <a class="name" href={to('/executions', { error_group, within })} title={latest.error_message ?? undefined}>
          {message || 'no message'}
        </a>
        <div class="under">
          <StatusBadge of={{ status, outcome_state: null }} />
          {http_status !== null && <Badge tone="quiet">{`HTTP ${http_status}`}</Badge>}
          <span>
            <a href={to(`/executions/${latest.execution_id}`)}>latest</a>
            {' of '}
            <CueLink id={latest.cue_id} name={latest.cue_name} />
          </span>
        </div>
      </td>
      <td class="number">
        {count(group.count)}
        <span class="phone-only">{group.count === 1 ? ' time' : ' times'}</span>
      </td>
      <td class="number">
        {count(cues)}
        <span class="phone-only">{cues === 1 ? ' cue' : ' cues'}</span>
      </td>
      <td class="cell-when">
        <span class="phone-only">{'last '}</span>
        <When at={last_at} only="relative" />
        {group.count > 1 && (
          <div class="under">
            <span>
              {'first '}
              <When at={first_at} only="relative" />
            </span>
          </div>
        )}
      </td>
      {choose && (
        <td class="cell-actions">
          <div class="actions">
            {actions.map(of => (
              <Button key={of.type} label={of.label} icon={of.icon} kind="quiet" shortcut={of.key} onClick={() => choose({ of, group })} />
            ))}
          </div>
        </td>
      )}
    </tr>
  )
}
