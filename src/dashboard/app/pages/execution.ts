/** One execution: its path through the states, every attempt, and what to do with it. */

import { useState } from 'preact/hooks'
import type { CueDetail, ExecutionDetail, Executions, Replayed } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay } from '../session.ts'
import { duration, useZone, zoneFor } from '../time.ts'
import { Badge, Button, Code, Copy, Facts, Loading, Panel, Problem, Tabs } from '../ui/basics.ts'
import { act, Confirm } from '../ui/dialog.ts'
import { Above, Page } from '../ui/frame.ts'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.ts'
import { say } from '../ui/toast.ts'
import { When } from '../ui/when.ts'
import { zoneOf } from './cues.ts'
import { Evidence, VerifyButtons } from './evidence.ts'
import { isRunning, whileMoving } from './executions.ts'
import { curlOf, requestOf, verifyCode } from './request-code.ts'
import { StateDiagram, Steps } from './timeline.ts'

const waiting = ['pending', 'retrying', 'retry_ready']

export const ExecutionPage = ({ id }: { id: string }) => {
  const read = useRead<ExecutionDetail>(`/v1/executions/${encodeURIComponent(id)}`, {}, { every: execution => whileMoving([execution]) })
  const { data: execution } = read
  const cue = useRead<CueDetail>(execution && `/v1/cues/${execution.cue_id}`, {}, { repeat: false }).data
  const mayWrite = useMay('write')
  const [asked, ask] = useState<'cancel'>()
  const hasEnded = execution && !isRunning(execution)
  const replay = () =>
    act(async () => {
      const { execution_id } = await post<Replayed>(`/v1/executions/${id}/replay`, undefined, { 'idempotency-key': crypto.randomUUID() })
      say('Replayed as a new execution.')
      go(to(`/executions/${execution_id}`))
    })
  useShortcuts(mayWrite && hasEnded ? [{ key: 'r', text: 'Replay', run: () => void replay() }] : [])
  if (!execution)
    return h(
      Page,
      { title: 'Execution', above: h(Above, { path: '/executions', name: 'Executions' }) },
      read.failure ? h(Problem, { failure: read.failure }) : h(Loading, {})
    )
  const zone = cue && zoneOf(cue)
  return h(
    Page,
    {
      title: `Execution of ${execution.cue_name}`,
      heading: [h(CueLink, { key: 'cue', id: execution.cue_id, name: execution.cue_name })],
      above: h(Above, { path: '/executions', name: 'Executions' }),
      read,
      about: [
        h(StatusBadge, { key: 'status', of: execution }),
        h(OutcomeBadge, { key: 'outcome', state: execution.outcome_state }),
        h(When, { key: 'when', at: execution.scheduled_for, zone }),
        h('span', { key: 'id', class: 'mono id' }, execution.id, h(Copy, { text: execution.id, label: 'Copy the id' }))
      ],
      actions: mayWrite && [
        hasEnded &&
          h(Button, { key: 'replay', label: 'Replay', icon: 'replay', kind: 'main', shortcut: 'r', onClick: () => void replay() }),
        waiting.includes(execution.status) && h(Button, { key: 'cancel', label: 'Cancel', icon: 'stop', onClick: () => ask('cancel') })
      ]
    },
    h(Problem, { failure: read.failure }),
    execution.error_message && h('p', { class: 'problem bad' }, h('span', {}, h('strong', {}, 'Error. '), execution.error_message)),
    h(StateDiagram, { execution, transport: cue?.transport }),
    h(
      'div',
      { class: 'columns' },
      h(
        'div',
        { class: 'stack' },
        h(Panel, { title: 'Timeline' }, h(Steps, { execution, zone: zoneFor(useZone(), zone) })),
        h(Attempts, { execution, zone }),
        execution.outcome &&
          h(
            Panel,
            {
              title: 'Outcome',
              actions: execution.outcome_state === 'verification_pending' && h(VerifyButtons, { id, onDone: read.reload })
            },
            h(Evidence, { outcome: execution.outcome })
          )
      ),
      h(
        'div',
        { class: 'stack' },
        h(Links, { execution, zone }),
        h(Panel, { title: 'Payload' }, h(Code, { text: JSON.stringify(execution.payload, null, 2), label: 'payload' })),
        execution.response_body !== null &&
          h(Panel, { title: 'Latest response' }, h(Code, { text: execution.response_body, label: 'response', wrap: true })),
        cue?.transport === 'webhook' && h(Request, { execution, cue })
      )
    ),
    asked === 'cancel' &&
      h(
        Confirm,
        {
          title: 'Cancel this execution',
          label: 'Cancel the execution',
          kind: 'danger',
          onClose: () => ask(undefined),
          done: 'Cancelled',
          action: () => post(`/v1/executions/${id}/cancel`).then(read.reload)
        },
        h('p', {}, 'It ends without another attempt.')
      )
  )
}

const Attempts = ({ execution, zone }: { execution: ExecutionDetail; zone?: string }) => {
  if (execution.attempt_log.length === 0) return null
  const longest = Math.max(...execution.attempt_log.map(({ duration_ms }) => duration_ms), 1)
  return h(
    Panel,
    { title: 'Attempts', flush: true },
    h(
      'table',
      { class: 'table attempts' },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['#', 'Started', 'Result', 'Response', 'Took'].map(name =>
            h('th', { key: name, scope: 'col', class: name === 'Took' ? 'number' : undefined }, name)
          )
        )
      ),
      h(
        'tbody',
        {},
        execution.attempt_log.map(({ attempt, started_at, result, http_status, error, duration_ms, worker_id }) =>
          h(
            'tr',
            { key: `${attempt} ${started_at}` },
            h('td', {}, attempt),
            h('td', {}, h(When, { at: started_at, zone, only: 'absolute' })),
            h('td', {}, h(Badge, { tone: result === 'success' ? 'good' : result === 'lost' ? 'warn' : 'bad' }, result)),
            h(
              'td',
              { class: 'cell-main' },
              http_status !== null && h('span', { class: 'mono' }, `HTTP ${http_status}`),
              worker_id && h('span', { class: 'mono' }, worker_id),
              error && h('div', { class: 'under' }, error)
            ),
            h(
              'td',
              { class: 'number' },
              duration(duration_ms),
              h('meter', { class: 'took', min: 0, max: longest, value: duration_ms, 'aria-label': `${duration_ms} ms` })
            )
          )
        )
      )
    )
  )
}

const Links = ({ execution, zone }: { execution: ExecutionDetail; zone?: string }) => {
  // A replay is a newer execution of the same cue.
  const newer = useRead<Executions>(
    '/v1/executions',
    { cue_id: execution.cue_id, triggered_by: 'replay', limit: 50, count_to: 0, since: execution.created_at },
    { repeat: false }
  ).data
  const replays = newer?.executions.filter(({ replayed_from }) => replayed_from === execution.id) ?? []
  return h(
    Panel,
    { title: 'About' },
    h(Facts, {
      items: [
        ['Triggered by', execution.triggered_by.replaceAll('_', ' ')],
        [
          'Replay of',
          execution.replayed_from &&
            h('a', { class: 'mono', href: to(`/executions/${execution.replayed_from}`) }, execution.replayed_from.slice(0, 13))
        ],
        [
          'Replayed by',
          replays.length > 0 &&
            replays.map(({ id }) => h('a', { key: id, class: 'mono', href: to(`/executions/${id}`) }, `${id.slice(0, 13)} `))
        ],
        ['Attempts', execution.attempts],
        [
          'Worker',
          execution.claimed_by_worker &&
            h('a', { href: to('/executions', { worker_id: execution.claimed_by_worker }) }, execution.claimed_by_worker)
        ],
        ['Lease until', execution.lease_expires_at && h(When, { at: execution.lease_expires_at })],
        ['Next retry', execution.next_retry && h(When, { at: execution.next_retry, isNext: true })],
        ['Created', h(When, { at: execution.created_at, zone, only: 'absolute' })]
      ].filter(([, value]) => value !== false) as [string, string][]
    })
  )
}

const Request = ({ execution, cue }: { execution: ExecutionDetail; cue: CueDetail }) =>
  h(
    Panel,
    { title: 'Request' },
    h(Tabs, {
      label: 'The request',
      tabs: [
        { name: 'As sent', body: () => h(Code, { text: requestOf(execution, cue), label: 'request', wrap: true }) },
        {
          name: 'curl',
          body: () => [
            h('p', { key: 'hint', class: 'hint' }, 'Sends the same body, without the signature.'),
            h(Code, { key: 'code', text: curlOf(execution, cue), label: 'curl' })
          ]
        },
        ...Object.entries(verifyCode).map(([name, text]) => ({
          name,
          body: () => [h('p', { key: 'hint', class: 'hint' }, 'Verifies the signature.'), h(Code, { key: 'code', text, label: name })]
        }))
      ]
    })
  )
