/** Chains: what a cue follows and what follows it, and the runs before and after an execution. */
import type { CueDetail, Cues, ExecutionDetail } from '../../../client/types.ts'
import { afterText } from '../../../schedule/after-text.ts'
import { post } from '../api.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { type Children, Facts, PageLink, Panel } from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { TextField, useText } from '../ui/form.tsx'
import { CueLink, resultOf, StatusBadge } from '../ui/results.tsx'
import { When } from '../ui/when.tsx'
import { CueStatus } from './cues.tsx'
import { isRunning } from './executions.tsx'

type Listed = Cues['cues'][number]
type Signal = CueDetail['pending_signals'][number]
type Parent = ExecutionDetail['parents'][number]
type Follower = ExecutionDetail['followers'][number]

/** The cues that it follows, with their signals, and those that follow it. */
export const ChainPanel = ({ cue }: { cue: CueDetail }) => {
  const { after, followers } = cue
  const isChained = after !== null || followers.length > 0
  const query = { chain: cue.id, summary: true, limit: 100, count_to: 0 }
  const all = useRead<Cues>(isChained ? '/v1/cues' : undefined, query).data?.cues ?? []
  const find = (ref: string) => all.find(({ id, key }) => ref === (key ?? id))
  if (!isChained) return null
  return (
    <Panel title="Chain" actions={<a href={to('/cues', { chain: cue.id })}>All cues of the chain</a>}>
      {after && (
        <>
          {cue.schedule && <p class="words">{afterText(after)}</p>}
          <Refs
            title="After"
            refs={after.cues}
            find={find}
            note={ref => cue.pending_signals.filter(({ cue_id, cue_key }) => ref === (cue_key ?? cue_id)).map(signalNote)}
          />
          <Facts
            items={[
              ['Within', after.within],
              ['Slots wait', after.wait]
            ]}
          />
        </>
      )}
      {followers.length > 0 && <Refs title="Then" refs={followers} find={find} note={ref => conditionOf(find(ref))} />}
    </Panel>
  )
}

const signalNote = ({ execution_id, signalled_at, expires_at }: Signal) => (
  <span key={execution_id}>
    <a href={to(`/executions/${execution_id}`)}>signalled</a> <When at={signalled_at} only="relative" />, expires{' '}
    <When at={expires_at} only="relative" />
  </span>
)

const conditionOf = (follower: Listed | undefined): string => {
  if (!follower?.after) return ''
  const { when, mode, cues } = follower.after
  return [when === 'success' ? '' : `when ${when}`, cues.length > 1 ? `${mode} of ${cues.length}` : ''].filter(Boolean).join(', ')
}

type RefsProps = { title: string; refs: string[]; find: (ref: string) => Listed | undefined; note: (ref: string) => Children }
const Refs = ({ title, refs, find, note }: RefsProps) => (
  <section class="chain" aria-label={title}>
    <h3>{title}</h3>
    <ul>
      {refs.map(ref => {
        const cue = find(ref)
        return (
          <li key={ref}>
            <div class="split">
              {cue ? <CueLink id={cue.id} name={cue.name} /> : <code>{ref}</code>}
              {cue && <Latest cue={cue} />}
            </div>
            <div class="soft small">{note(ref)}</div>
          </li>
        )
      })}
    </ul>
  </section>
)

/** Its latest run; if it does not run, why. */
const Latest = ({ cue }: { cue: Listed }) => {
  const run = cue.summary?.latest[0]
  if (cue.status !== 'active') return <CueStatus cue={cue} />
  return run ? <StatusBadge of={run} /> : <span class="soft">No runs yet</span>
}

/** Whether it has failed, and there are followers that it has not signalled. */
export const canSignal = (execution: ExecutionDetail, cue: CueDetail): boolean =>
  !isRunning(execution) &&
  resultOf(execution) !== 'proven' &&
  resultOf(execution) !== 'unproven' &&
  execution.followers.length < cue.followers.length

export const SignalDialog = ({ execution: { id }, onDone }: { execution: ExecutionDetail; onDone: () => void }) => {
  const reason = useText('')
  const signal = () => post(`/v1/executions/${id}/signal`, { reason: reason.value.trim() }).then(onDone)
  return (
    <Confirm title="Signal anyway" label="Signal the followers" action={signal} done="The followers are signalled">
      <p>The cues that follow run as if this execution had succeeded. It stays as it is. If it can succeed, replay it instead.</p>
      <TextField label="Reason" {...reason} required maxLength={500} hint="For the audit log." />
    </Confirm>
  )
}

/** The executions that it follows, itself, and those that follow it. */
export const RunsPanel = ({ execution }: { execution: ExecutionDetail }) => (
  <Panel title="Chain">
    <div class="chain-runs">
      {execution.parents.length > 0 && (
        <ul aria-label="After">
          {execution.parents.map(parent => (
            <li key={parent.execution_id}>
              <ParentRun {...parent} />
            </li>
          ))}
        </ul>
      )}
      <ul aria-label="This execution">
        <li>
          <strong>{execution.cue_name}</strong> <StatusBadge of={execution} />
        </li>
      </ul>
      {execution.followers.length > 0 && (
        <ul aria-label="Then">
          {execution.followers.map(follower => (
            <li key={follower.cue_id}>
              <FollowerRun {...follower} />
            </li>
          ))}
        </ul>
      )}
    </div>
  </Panel>
)

const ParentRun = ({ cue_id, cue_key, execution_id }: Parent) => {
  const run = useRead<ExecutionDetail>(`/v1/executions/${execution_id}`, {}, { repeat: false }).data
  const name = run?.cue_name ?? cue_key ?? cue_id
  return (
    <>
      <PageLink href={to(`/executions/${execution_id}`)} text={name} /> {run && <StatusBadge of={run} />}
    </>
  )
}

const FollowerRun = ({ cue_id, cue_key, execution_id, status }: Follower) =>
  execution_id && status ? (
    <>
      <PageLink href={to(`/executions/${execution_id}`)} text={cue_key ?? cue_id} /> <StatusBadge of={{ status, outcome_state: null }} />
    </>
  ) : (
    <>
      <CueLink id={cue_id} name={cue_key ?? cue_id} /> <span class="soft">signalled, no run</span>
    </>
  )
