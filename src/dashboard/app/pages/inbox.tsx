/** Outcomes that wait for a person: evidence beside the list, decided by keyboard. */
import { useState } from 'preact/hooks'
import type { Execution, Executions } from '../../../client/types.ts'
import { useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Button, Empty, Panel } from '../ui/basics.tsx'
import { TextField } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'
import { approve, Evidence, reject } from './evidence.tsx'
import { verificationCalls } from './teach.ts'

const text = 'Outcomes appear here when a cue has manual verification, or when a program asks for it. This creates such a cue:'

export const Inbox = () => {
  const read = useRead<Executions>('/v1/executions', { outcome_state: 'verification_pending', limit: 100, count_to: 1000 })
  const me = useMe()
  const mayWrite = useMay('write')
  const { query, setQuery } = usePlace()
  const [decided, setDecided] = useState<string[]>([])
  const [note, setNote] = useState('')
  const all = (read.data?.executions ?? []).filter(({ id }) => !decided.includes(id))
  const at = Math.max(
    all.findIndex(({ id }) => id === query.execution),
    0
  )
  const chosen = all[at]
  const choose = (n: number) => all[n] && setQuery({ execution: all[n].id })
  const done = () => {
    if (!chosen) return
    setDecided([...decided, chosen.id])
    setNote('')
    setQuery({ execution: (all[at + 1] ?? all[at - 1])?.id })
    read.reload()
  }
  const accept = () => chosen && void approve(chosen.id, note).then(done)
  const refuse = () => chosen && reject({ id: chosen.id, note, onDone: done })
  const decisions = [
    { key: 'y', text: 'Approve', run: accept },
    { key: 'x', text: 'Reject', run: refuse }
  ]
  useShortcuts([
    { key: 'j', text: 'Next', run: () => choose(at + 1) },
    { key: 'k', text: 'Previous', run: () => choose(at - 1) },
    ...(mayWrite && chosen ? decisions : [])
  ])
  const actions = mayWrite && (
    <>
      <Button label="Approve" icon="check" kind="main" shortcut="y" onClick={accept} />
      <Button label="Reject" icon="close" shortcut="x" onClick={refuse} />
    </>
  )
  return (
    <Page title="Verification inbox" read={read}>
      {() =>
        chosen ? (
          <div class="columns list-first">
            <ul class="panel flush" aria-label="Outcomes to verify">
              {all.map(execution => (
                <Item key={execution.id} of={execution} isChosen={execution === chosen} />
              ))}
            </ul>
            <Panel title={chosen.cue_name} actions={actions}>
              <p>
                Scheduled for <When at={chosen.scheduled_for} only="absolute" />.{' '}
                <a href={to(`/executions/${chosen.id}`)}>Open the execution</a>
              </p>
              {mayWrite && (
                <TextField label="Note (optional)" value={note} onInput={setNote} maxLength={2000} hint="Kept with your decision." />
              )}
              {chosen.outcome && <Evidence outcome={chosen.outcome} costs={chosen.costs} />}
            </Panel>
          </div>
        ) : (
          <Empty title="Nothing to verify" text={text} calls={verificationCalls(me)} />
        )
      }
    </Page>
  )
}

const Item = ({ of: { id, cue_name, outcome, created_at }, isChosen }: { of: Execution; isChosen: boolean }) => {
  const { setQuery } = usePlace()
  const choose = () => setQuery({ execution: id })
  return (
    <li>
      <button type="button" class="inbox-item" aria-current={isChosen ? 'true' : undefined} onClick={choose}>
        <span class="name">{cue_name}</span>
        <span class="soft one-line">{outcome?.summary ?? outcome?.result ?? 'No summary'}</span>
        <span class="soft small">
          <When at={outcome?.recorded_at ?? created_at} only="relative" />
        </span>
      </button>
    </li>
  )
}
