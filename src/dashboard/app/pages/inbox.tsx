/** Outcomes that wait for a person: evidence beside the list, decided by keyboard. */

import { useState } from 'preact/hooks'
import type { Executions } from '../../../client/types.ts'

import { useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { setQuery, to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Button, Empty, Loading, Panel, Problem } from '../ui/basics.tsx'
import { Page } from '../ui/frame.tsx'
import { When } from '../ui/when.tsx'
import { approve, Evidence, RejectDialog } from './evidence.tsx'
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
  return (
    <Page title="Verification inbox" read={read}>
      <Problem failure={read.failure} />
      {!read.data ? (
        !read.failure && <Loading />
      ) : !chosen ? (
        <Empty
          title="Nothing to verify"
          text="Outcomes appear here when a cue has manual verification, or when a program asks for it. This creates such a cue:"
          calls={verificationCalls(me)}
        />
      ) : (
        <div class="inbox">
          <ul class="inbox-list panel flush" aria-label="Outcomes to verify">
            {all.map(one => (
              <li key={one.id}>
                <button
                  type="button"
                  class="inbox-item"
                  aria-current={one.id === chosen.id ? 'true' : undefined}
                  onClick={() => setQuery({ execution: one.id })}
                >
                  <span class="name">{one.cue_name}</span>
                  <span class="under clip">{one.outcome?.summary ?? one.outcome?.result ?? 'No summary'}</span>
                  <span class="under soft">
                    <When at={one.outcome?.recorded_at ?? one.created_at} only="relative" />
                  </span>
                </button>
              </li>
            ))}
          </ul>
          <Panel
            title={chosen.cue_name}
            actions={
              mayWrite && (
                <>
                  <Button label="Approve" icon="check" kind="main" shortcut="y" onClick={accept} />
                  <Button label="Reject" icon="close" shortcut="x" onClick={() => reject(true)} />
                </>
              )
            }
          >
            <p>
              {'Scheduled for '}
              <When at={chosen.scheduled_for} only="absolute" />
              {'. '}
              <a href={to(`/executions/${chosen.id}`)}>Open the execution</a>
            </p>
            {chosen.outcome && <Evidence outcome={chosen.outcome} />}
          </Panel>
        </div>
      )}
      {rejecting && chosen && <RejectDialog id={chosen.id} onClose={() => reject(false)} onDone={done} />}
    </Page>
  )
}
