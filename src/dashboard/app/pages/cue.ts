/** One cue: its next runs, what happened, its definition, and actions. */

import { useState } from 'preact/hooks'
import type { CueDetail } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { useRows, useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { duration, localZone, serviceNow, useZone, zoneFor } from '../time.ts'
import { Button, ButtonLink, Code, Copy, counted, Empty, Facts, Loading, Panel, Problem, Tag } from '../ui/basics.ts'
import { Durations } from '../ui/chart.ts'
import { act } from '../ui/dialog.ts'
import { Above, Page } from '../ui/frame.ts'
import { When } from '../ui/when.ts'
import { DeleteDialog, FireDialog, PauseDialog } from './cue-actions.ts'
import { CueStatus, pauseText, zoneOf } from './cues.ts'
import { ExecutionTable, whileMoving } from './executions.ts'
import { HistoryPanel } from './history.ts'
import { NextRuns, useSchedulePreview } from './schedule.ts'
import { fireCalls } from './teach.ts'

type Open = 'fire' | 'pause' | 'delete'

/** Milliseconds to the next read while an execution is about to change, or to just after the next run. */
const whileRunning = ({ executions, next_run }: CueDetail): number | undefined => {
  const left = next_run ? Date.parse(next_run) - serviceNow() : Number.NaN
  return whileMoving(executions) ?? (left > -60_000 ? Math.max(left + 300, 1000) : undefined)
}

export const CuePage = ({ id }: { id: string }) => {
  const read = useRead<CueDetail>(`/v1/cues/${encodeURIComponent(id)}`, {}, { every: whileRunning })
  const { data: cue } = read
  const [open, setOpen] = useState<Open>()
  const mayWrite = useMay('write')
  const isActive = cue?.status === 'active'
  const isPaused = cue?.status === 'paused'
  const resume = () => act(() => post(`/v1/cues/${id}/resume`, {}), 'The cue runs again').then(read.reload)
  useRows()
  useShortcuts(
    mayWrite && cue
      ? [
          { key: 'f', text: 'Fire now', run: () => setOpen('fire') },
          { key: 'p', text: isPaused ? 'Resume' : 'Pause', run: () => (isPaused ? void resume() : isActive && setOpen('pause')) },
          { key: 'i', text: 'Edit', run: () => go(to(`/cues/${id}/edit`)) }
        ]
      : []
  )
  if (!cue)
    return h(
      Page,
      { title: 'Cue', above: h(Above, { path: '/cues', name: 'Cues' }) },
      read.failure ? h(Problem, { failure: read.failure }) : h(Loading, {})
    )
  const close = () => setOpen(undefined)
  return h(
    Page,
    {
      title: cue.name,
      above: h(Above, { path: '/cues', name: 'Cues' }),
      read,
      about: [
        h(CueStatus, { key: 'status', cue }),
        h('span', { key: 'id', class: 'mono id' }, cue.key ?? cue.id, h(Copy, { text: cue.key ?? cue.id, label: 'Copy the id' })),
        cue.tags.map(tag => h(Tag, { key: tag, label: tag, href: to('/cues', { tag }) })),
        cue.managed_by && h(Tag, { key: 'set', label: `set ${cue.managed_by}`, href: to('/cues', { set: cue.managed_by }) })
      ],
      actions: mayWrite && [
        h(Button, { key: 'fire', label: 'Fire now', icon: 'play', kind: 'main', shortcut: 'f', onClick: () => setOpen('fire') }),
        isActive && h(Button, { key: 'pause', label: 'Pause', icon: 'pause', shortcut: 'p', onClick: () => setOpen('pause') }),
        isPaused && h(Button, { key: 'resume', label: 'Resume', icon: 'play', shortcut: 'p', onClick: () => void resume() }),
        h(ButtonLink, { key: 'edit', label: 'Edit', icon: 'edit', href: to(`/cues/${id}/edit`) }),
        h(Button, { key: 'delete', label: 'Delete', icon: 'trash', kind: 'quiet', iconOnly: true, onClick: () => setOpen('delete') })
      ]
    },
    h(Problem, { failure: read.failure }),
    isPaused &&
      h(
        'p',
        { class: `problem ${cue.paused_by === 'user' ? 'warn' : 'bad'}` },
        h(
          'span',
          {},
          h('strong', {}, 'Paused. '),
          pauseText(cue).replace(/[^.!?]$/, '$&.'),
          cue.paused_at && [' Since ', h(When, { at: cue.paused_at, zone: zoneOf(cue), only: 'absolute' }), '.'],
          cue.paused_until && [' Until ', h(When, { at: cue.paused_until, zone: zoneOf(cue), only: 'absolute' }), '.']
        )
      ),
    cue.description && h('p', { class: 'lead' }, cue.description),
    h('div', { class: 'columns' }, h(Main, { cue }), h(Side, { cue })),
    open === 'fire' && h(FireDialog, { cue, onClose: close, onDone: read.reload }),
    open === 'pause' && h(PauseDialog, { cue, onClose: close, onDone: read.reload }),
    open === 'delete' && h(DeleteDialog, { cue, onClose: close })
  )
}

const Main = ({ cue }: { cue: CueDetail }) => {
  const me = useMe()
  return h(
    'div',
    { class: 'stack' },
    h(
      Panel,
      {
        title: 'Recent executions',
        flush: true,
        actions:
          cue.execution_total > 0 &&
          h('a', { href: to('/executions', { cue_id: cue.id }) }, `All ${counted(cue.execution_total, 'execution')}`)
      },
      cue.executions.length > 0
        ? h(ExecutionTable, { executions: cue.executions, ofOneCue: true, zone: zoneOf(cue) })
        : h(Empty, { title: 'No executions yet', text: 'Wait for its next run, or fire it now:', calls: fireCalls(me, cue.id) })
    ),
    cue.executions.length > 1 && h(Panel, { title: 'Duration and lateness' }, h(Durations, { cueId: cue.id })),
    h(HistoryPanel, { cue })
  )
}

const Side = ({ cue }: { cue: CueDetail }) => {
  const zone = zoneFor(useZone(), zoneOf(cue))
  const preview = useSchedulePreview(cue.schedule, 10, cue.next_run)
  const { delivery, retry, on_failure, verification, alerts } = cue
  const waits = retry.backoff_minutes.slice(0, retry.max_attempts - 1)
  return h(
    'div',
    { class: 'stack' },
    h(
      Panel,
      { title: 'Schedule' },
      h('p', { class: 'words' }, preview.data?.description ?? ''),
      h(ScheduleText, { cue }),
      cue.status === 'active' && preview.data && h(NextRuns, { preview: preview.data, zone }),
      zone !== localZone() && h('p', { class: 'hint' }, `Times are in ${zone}; your zone is ${localZone()}.`)
    ),
    h(
      Panel,
      { title: 'Delivery' },
      h(Facts, {
        items: [
          ['Transport', cue.transport],
          ['Callback', cue.callback.url && h('span', { class: 'mono break' }, `${cue.callback.method} ${cue.callback.url}`)],
          ['Headers', Object.keys(cue.callback.headers).join(', ')],
          ['Attempts', waits.length > 0 ? `${retry.max_attempts}, after ${waits.join(', ')} min` : retry.max_attempts],
          ['Timeout', delivery && `${delivery.timeout_seconds} s`],
          ['Awaits an outcome', delivery?.await_outcome ? `within ${duration(delivery.outcome_deadline_seconds * 1000)}` : null],
          ['Verification', verification?.mode.replaceAll('_', ' ')],
          ['Overlap', cue.overlap === 'allow' ? null : cue.overlap.replaceAll('_', ' ')],
          ['Completed', cue.completed_reason?.replaceAll('_', ' ')],
          ['After an outage', cue.catch_up.replaceAll('_', ' ')],
          ['Alerts after', alerts && `${counted(alerts.consecutive_failures, 'failure')} in a row`],
          [
            'On failure',
            [
              on_failure.email && 'mail',
              on_failure.webhook && 'webhook',
              on_failure.pause && 'pause',
              on_failure.pause_after && `pause after ${on_failure.pause_after}`
            ]
              .filter(Boolean)
              .join(', ') || 'nothing'
          ],
          ['Runs so far', cue.run_count.toLocaleString('en')],
          ['Version', cue.version],
          ['Created', h(When, { at: cue.created_at, only: 'absolute' })]
        ]
      })
    ),
    h(Panel, { title: 'Payload' }, h(Code, { text: JSON.stringify(cue.payload, null, 2), label: 'payload' })),
    h(OtherMembers, { cue })
  )
}

type Members = Record<string, unknown> & { cron?: string; at?: string; timezone: string; exclude_calendars?: string[] }
const ScheduleText = ({ cue: { schedule } }: { cue: CueDetail }) => {
  const { cron, at, timezone, exclude_calendars, type: _, ...others } = schedule as Members
  return h(Facts, {
    items: [
      ['Cron', cron && h('code', {}, cron)],
      ['At', at && h(When, { at, zone: timezone, only: 'absolute' })],
      ['Zone', timezone],
      [
        'Calendars',
        exclude_calendars?.map((name, n) => [
          n > 0 && ', ',
          h('a', { key: name, href: to(`/calendars/${encodeURIComponent(name)}`) }, name)
        ])
      ],
      ...Object.entries(others).map(([name, value]): [string, string] => [
        name.replaceAll('_', ' '),
        typeof value === 'string' ? value : JSON.stringify(value)
      ])
    ]
  })
}

const known = new Set(
  `id name key description tags managed_by status paused_at paused_by pause_reason paused_until transport schedule callback payload retry on_failure delivery
   alerts catch_up overlap completed_reason verification next_run next_slot last_run run_count fired_count version warning created_at updated_at executions execution_total missed`.split(
    /\s+/
  )
)
/** Members of a newer API. */
const OtherMembers = ({ cue }: { cue: CueDetail }) => {
  const others = Object.entries(cue).filter(([name, value]) => !known.has(name) && value !== null && value !== undefined)
  if (others.length === 0) return null
  return h(
    Panel,
    { title: 'Further settings' },
    h(Facts, {
      items: others.map(([name, value]): [string, string] => [
        name.replaceAll('_', ' '),
        typeof value === 'string' ? value : JSON.stringify(value)
      ])
    })
  )
}
