/** Executions that wait for a person: the payload beside the list, decided by keyboard. */
import { useState } from 'preact/hooks'
import type { Decision, Execution, ExecutionDetail, Executions } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useShortcuts } from '../keys.ts'
import { labelOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Button, Code, Empty, Facts, Loading, Panel, totalText } from '../ui/basics.tsx'
import { act, Confirm, show } from '../ui/dialog.tsx'
import { TextField, useText } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink } from '../ui/results.tsx'
import { When } from '../ui/when.tsx'
import { useActorText } from './actor.tsx'
import { approvalCalls } from './teach.ts'

type Approval = NonNullable<Execution['approval']>

const text = 'Runs of cues with an approval appear here, and wait until somebody approves them. This creates such a cue:'

const approve = (id: string, onDone: () => void) =>
  void act(async () => {
    await post<Decision>(`/v1/executions/${id}/approve`, {})
    onDone()
  }, 'Approved')

type Deciding = { id: string; onDone: () => void }
const RejectDialog = ({ id, onDone }: Deciding) => {
  const reason = useText()
  const action = () => post<Decision>(`/v1/executions/${id}/reject`, { reason: reason.value.trim() })
  return (
    <Confirm title="Reject the run" label="Reject" kind="danger" done="Rejected" action={action} onDone={onDone}>
      <TextField label="Reason" {...reason} required maxLength={500} autofocus hint="Stored with the execution, which ends as failed." />
    </Confirm>
  )
}
const reject = (deciding: Deciding) => show(<RejectDialog {...deciding} />)

/** Approve and reject, or why this session can do neither. */
export const DecisionButtons = ({ id, onDone, isListed }: Deciding & { isListed?: boolean }) => {
  if (!useMay('approve')) return <span class="soft">Deciding needs the scope approve. Sign in with an email link.</span>
  const [yes, no] = isListed ? ['a', 'r'] : []
  return (
    <>
      <Button label="Approve" icon="check" kind="main" shortcut={yes} onClick={() => approve(id, onDone)} />
      <Button label="Reject" icon="close" shortcut={no} onClick={() => reject({ id, onDone })} />
    </>
  )
}

/** All that is known about an approval but its decision. */
export const ApprovalFacts = ({ of, children = [] }: { of: Approval; children?: [string, preact.ComponentChildren][] }) => {
  const actorText = useActorText()
  const { message, requested_at, requested_by, expires_at, on_expiry, decision, decided_at, decided_by, decided_via, reason } = of
  const expiry = expires_at && (
    <>
      <When at={expires_at} isNext />, then {labelOf('approvalExpiry', on_expiry)}
    </>
  )
  return (
    <Facts
      items={[
        ['Message', message && <span class="break">{message}</span>],
        ...children,
        ['Requested', <When at={requested_at} only="relative" />],
        ['Requested by', requested_by ? actorText(requested_by) : 'its schedule'],
        ['Expires', decision ? null : (expiry ?? 'never')],
        ['Decision', decision && [labelOf('approvalDecision', decision), ' ', <When key="at" at={decided_at} only="relative" />]],
        ['Decided by', decided_by && [actorText(decided_by), decided_via && decided_via !== 'call' && `, by ${decided_via}`]],
        ['Reason', reason && <span class="break">{reason}</span>]
      ]}
    />
  )
}

export const Approvals = () => {
  const read = useRead<Executions>('/v1/executions', { held: 'approval', limit: 100, count_to: 1000 })
  const me = useMe()
  const mayDecide = useMay('approve')
  const { query, setQuery } = usePlace()
  const [decided, setDecided] = useState<string[]>([])
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
    setQuery({ execution: (all[at + 1] ?? all[at - 1])?.id })
    read.reload()
  }
  const decisions = chosen && [
    { key: 'a', text: 'Approve', run: () => approve(chosen.id, done) },
    { key: 'r', text: 'Reject', run: () => reject({ id: chosen.id, onDone: done }) }
  ]
  useShortcuts([
    { key: 'j', text: 'Next', run: () => choose(at + 1) },
    { key: 'k', text: 'Previous', run: () => choose(at - 1) },
    ...(mayDecide && decisions ? decisions : [])
  ])
  return (
    <Page
      title="Approvals"
      read={read}
      about={read.data && read.data.total > all.length && `${totalText(read.data)} wait, the newest first`}
    >
      {() =>
        chosen ? (
          <div class="columns list-first">
            <ul class="panel flush" aria-label="Executions that wait for approval">
              {all.map(execution => (
                <Item key={execution.id} of={execution} isChosen={execution === chosen} />
              ))}
            </ul>
            <Chosen key={chosen.id} of={chosen} onDone={done} />
          </div>
        ) : (
          <Empty title="Nothing to approve" text={text} calls={approvalCalls(me)} />
        )
      }
    </Page>
  )
}

const Chosen = ({ of: { id, cue_id, cue_name, scheduled_for, approval }, onDone }: { of: Execution; onDone: () => void }) => {
  const { data } = useRead<ExecutionDetail>(`/v1/executions/${id}`, {}, { repeat: false })
  return (
    <Panel title={<CueLink id={cue_id} name={cue_name} />} actions={<DecisionButtons id={id} onDone={onDone} isListed />}>
      {approval && (
        <ApprovalFacts of={approval}>
          {[
            ['Scheduled for', <When at={scheduled_for} only="absolute" />],
            ['Execution', <a href={to(`/executions/${id}`)}>Open the execution</a>]
          ]}
        </ApprovalFacts>
      )}
      <p class="soft">Payload, as it is sent once approved</p>
      {data ? <Code text={JSON.stringify(data.payload, null, 2)} label="payload" wrap /> : <Loading lines={3} />}
    </Panel>
  )
}

const Item = ({ of: { id, cue_name, approval, created_at }, isChosen }: { of: Execution; isChosen: boolean }) => {
  const { setQuery } = usePlace()
  const since = approval?.requested_at ?? created_at
  return (
    <li>
      <button type="button" class="inbox-item" aria-current={isChosen ? 'true' : undefined} onClick={() => setQuery({ execution: id })}>
        <span class="name">{cue_name}</span>
        <span class="soft one-line">{approval?.message ?? 'No message'}</span>
        <span class="soft small">
          <When at={since} only="relative" />
          {approval?.expires_at && [', expires ', <When key="expires" at={approval.expires_at} only="relative" isNext />]}
        </span>
      </button>
    </li>
  )
}
