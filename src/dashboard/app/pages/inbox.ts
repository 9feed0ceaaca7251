/** Outcomes that wait for a person: evidence beside the list, decided by keyboard. */

import { useState } from 'preact/hooks'
import type { Executions } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { setQuery, to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Button, Empty, Loading, Panel, Problem } from '../ui/basics.ts'
import { Page } from '../ui/frame.ts'
import { When } from '../ui/when.ts'
import { approve, Evidence, RejectDialog } from './evidence.ts'
import { verificationCalls } from './teach.ts'

export const Inbox = () => {
  const read = useRead<Executions>('/v1/executions', { outcome_state: 'verification_pending', limit: 100, count_to: 1000 })
  const me = useMe()
  const mayWrite = useMay('write')
  const [rejecting, reject] = useState(false)
  const [decided, setDecided] = useState<string[]>([])
  const chosenId = usePlace().query.get('execution')
  const all = (read.data?.executions ?? []).filter(({ id }) => !decided.includes(id))
  const at = Math.max(
    all.findIndex(({ id }) => id === chosenId),
    0
  )
  const chosen = all[at]
  const choose = (n: number) => all[n] && setQuery({ execution: all[n].id })
  const done = () => {
    if (!chosen) return
    setDecided([...decided, chosen.id])
    setQuery({ execution: (all[at + 1] ?? all[at - 1])?.id })
    read.reload()
  }
  const accept = () => chosen && void approve(chosen.id).then(done)
  useShortcuts([
    { key: 'j', text: 'Next', run: () => choose(at + 1) },
    { key: 'k', text: 'Previous', run: () => choose(at - 1) },
    ...(mayWrite && chosen
      ? [
          { key: 'y', text: 'Approve', run: accept },
          { key: 'x', text: 'Reject', run: () => reject(true) }
        ]
      : [])
  ])
  return h(
    Page,
    { title: 'Verification inbox', read },
    h(Problem, { failure: read.failure }),
    !read.data
      ? !read.failure && h(Loading, {})
      : !chosen
        ? h(Empty, {
            title: 'Nothing to verify',
            text: 'Outcomes appear here when a cue has manual verification, or when a program asks for it. This creates such a cue:',
            calls: verificationCalls(me)
          })
        : h(
            'div',
            { class: 'inbox' },
            h(
              'ul',
              { class: 'inbox-list panel flush', 'aria-label': 'Outcomes to verify' },
              all.map(one =>
                h(
                  'li',
                  { key: one.id },
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'inbox-item',
                      'aria-current': one.id === chosen.id ? 'true' : undefined,
                      onClick: () => setQuery({ execution: one.id })
                    },
                    h('span', { class: 'name' }, one.cue_name),
                    h('span', { class: 'under clip' }, one.outcome?.summary ?? one.outcome?.result ?? 'No summary'),
                    h('span', { class: 'under soft' }, h(When, { at: one.outcome?.recorded_at ?? one.created_at, only: 'relative' }))
                  )
                )
              )
            ),
            h(
              Panel,
              {
                title: chosen.cue_name,
                actions: mayWrite && [
                  h(Button, { key: 'approve', label: 'Approve', icon: 'check', kind: 'main', shortcut: 'y', onClick: accept }),
                  h(Button, { key: 'reject', label: 'Reject', icon: 'close', shortcut: 'x', onClick: () => reject(true) })
                ]
              },
              h(
                'p',
                {},
                'Scheduled for ',
                h(When, { at: chosen.scheduled_for, only: 'absolute' }),
                '. ',
                h('a', { href: to(`/executions/${chosen.id}`) }, 'Open the execution')
              ),
              chosen.outcome && h(Evidence, { outcome: chosen.outcome })
            )
          ),
    rejecting && chosen && h(RejectDialog, { id: chosen.id, onClose: () => reject(false), onDone: done })
  )
}
