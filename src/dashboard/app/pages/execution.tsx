/** One execution: its path through the states, every attempt, and what to do with it. */
import type { CueDetail, ExecutionDetail, Executions, Replayed } from '../../../client/types.ts'
import { parseExactly, post, type Query } from '../api.ts'
import { useShortcuts } from '../keys.ts'
import { labelOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { serviceRoot, serviceUrl } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { useZone, zoneFor } from '../time.ts'
import { Button, ButtonLink, Code, count, Facts, Id, Loading, Panel, Tabs } from '../ui/basics.tsx'
import { act, askToRemove, Dialog, show } from '../ui/dialog.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.tsx'
import { say } from '../ui/toast.tsx'
import { When } from '../ui/when.tsx'
import { adviceFor } from './advice.ts'
import { ApprovalFacts, DecisionButtons } from './approvals.tsx'
import { canSignal, RunsPanel, SignalDialog } from './chain.tsx'
import { FireDialog, TestDialog } from './cue-actions.tsx'
import { zoneOf } from './cues.tsx'
import { Evidence, VerifyButtons } from './evidence.tsx'
import { isRunning, whileMoving } from './executions.tsx'
import { curlOf, requestOf } from './request-code.ts'
import { Steps } from './timeline.tsx'

const waiting = ['pending', 'retrying', 'retry_ready']

export const ExecutionPage = ({ id }: { id: string }) => {
  const read = useRead<ExecutionDetail>(`/v1/executions/${encodeURIComponent(id)}`, {}, { every: execution => whileMoving([execution]) })
  const { data: execution } = read
  const cue = useRead<CueDetail>(execution && `/v1/cues/${execution.cue_id}`, {}, { repeat: false }).data
  const mayWrite = useMay('write')
  const { go } = usePlace()
  const hasEnded = execution && !isRunning(execution)
  const replay = () =>
    act(async () => {
      const { execution_id } = await post<Replayed>(`/v1/executions/${id}/replay`, undefined, { 'idempotency-key': crypto.randomUUID() })
      say('Replayed as a new execution.')
      go(to(`/executions/${execution_id}`))
    })
  const cancel = () =>
    askToRemove({
      title: 'Cancel this execution',
      label: 'Cancel the execution',
      text: 'It ends without another attempt.',
      done: 'Cancelled',
      action: () => post(`/v1/executions/${id}/cancel`).then(read.reload)
    })
  useShortcuts(mayWrite && hasEnded ? [{ key: 'r', text: 'Replay', run: () => void replay() }] : [])
  return (
    <Page
      title={execution ? `Execution of ${execution.cue_name}` : 'Execution'}
      heading={execution && <CueLink id={execution.cue_id} name={execution.cue_name} />}
      above={{ path: '/executions', name: 'Executions' }}
      read={read}
      about={
        execution && (
          <>
            <StatusBadge of={execution} />
            <OutcomeBadge state={execution.outcome_state} />
            <When at={execution.scheduled_for} zone={cue && zoneOf(cue)} />
            <Id text={execution.id} />
          </>
        )
      }
      actions={
        mayWrite &&
        execution && (
          <>
            {hasEnded && <Button label="Replay" icon="replay" kind="main" shortcut="r" onClick={() => void replay()} />}
            {cue && canSignal(execution, cue) && (
              <Button
                label="Signal anyway"
                icon="check"
                onClick={() => show(<SignalDialog execution={execution} onDone={read.reload} />)}
              />
            )}
            {waiting.includes(execution.status) && <Button label="Cancel" icon="stop" onClick={cancel} />}
            {cue && (
              <Button
                label="Other payload"
                icon="edit"
                onClick={() =>
                  show(
                    <FireDialog {...{ cue, payload: cue.template ? literal(execution.payload) : execution.payload }} onDone={read.reload} />
                  )
                }
              />
            )}
            {cue?.callback.url && (
              <Button label="Other URL" icon="external" onClick={() => show(<TestDialog {...{ cue, payload: execution.payload }} />)} />
            )}
            {cue && <ButtonLink label="Edit the cue" icon="cue" href={to(`/cues/${cue.id}/edit`)} />}
          </>
        )
      }
    >
      {execution => <Story execution={execution} cue={cue} reload={read.reload} />}
    </Page>
  )
}

/** A payload for a template, without placeholders: text that came from elsewhere must not become one. */
const literal = (payload: unknown): unknown => parseExactly(JSON.stringify(payload).replaceAll('{{', '{{{{'))

type StoryProps = { execution: ExecutionDetail; cue: CueDetail | undefined; reload: () => void }
const Story = ({ execution, cue, reload }: StoryProps) => {
  const zone = cue && zoneOf(cue)
  const isPending = execution.outcome_state === 'verification_pending'
  return (
    <>
      {execution.error_message && (
        <p class="problem bad">
          <span>
            <strong>Error.</strong> {execution.error_message.replace(/[^.!?]$/, '$&.')} {adviceFor(execution.error_message)}
          </span>
        </p>
      )}
      {(execution.parents.length > 0 || execution.followers.length > 0) && <RunsPanel execution={execution} />}
      <div class="columns">
        <div class="stack">
          <Panel title="Timeline">
            <Steps execution={execution} zone={zoneFor(useZone(), zone)} />
          </Panel>
          {execution.approval && (
            <Panel title="Approval" actions={execution.held?.by === 'approval' && <DecisionButtons id={execution.id} onDone={reload} />}>
              <ApprovalFacts of={execution.approval} />
            </Panel>
          )}
          {execution.outcome && (
            <Panel title="Outcome" actions={isPending && <VerifyButtons id={execution.id} onDone={reload} />}>
              <Evidence outcome={execution.outcome} costs={execution.costs} />
            </Panel>
          )}
        </div>
        <div class="stack">
          <About execution={execution} cue={cue} zone={zone} />
          <Panel title="Payload">
            {execution.template_truncated && <p class="hint">Values of its template are null, because they exceed 16 KB in all.</p>}
            <Code text={JSON.stringify(execution.payload, null, 2)} label="payload" />
          </Panel>
          {cue?.transport === 'webhook' && <Request execution={execution} cue={cue} />}
        </div>
      </div>
    </>
  )
}

/** The runs of the cue before and after this one; the next one is found among the 1,000 after it. */
const useNeighbors = ({ id, cue_id, created_at }: ExecutionDetail) => {
  const list = (query: Query | undefined) =>
    useRead<Executions>(query && '/v1/executions', { cue_id, limit: 1, count_to: 0, ...query }, { repeat: false }).data
  const newer = list({ since: created_at, count_to: 1000 })
  const isNear = newer?.total_exact && newer.total > 1
  const next = list(isNear ? { since: created_at, offset: newer.total - 2 } : undefined)?.executions[0]?.id
  return [list({ cursor: id })?.executions[0]?.id, next === id ? undefined : next]
}

/** A request to the echo buffer, for trying out. */
const Echo = ({ url }: { url: string }) => {
  const { data } = useRead<object>(new URL(url).pathname.slice(serviceRoot.length))
  return (
    <Dialog title="The latest request that arrived" kind="wide">
      {data ? <Code text={JSON.stringify(data, null, 2)} label="request" wrap /> : <Loading />}
    </Dialog>
  )
}

const holders = { after: 'the cues that it follows', approval: 'a decision', overlap: 'earlier runs of its cue', gate: 'its gate' }
const Held = ({ by, key, reason, since, ahead }: NonNullable<ExecutionDetail['held']>) => (
  <>
    {by === 'gate' && key ? <a href={to(`/gates/${encodeURIComponent(key.split('#')[0]!)}`)}>gate {key}</a> : holders[by]}
    {by === 'gate' && ` (${reason})`}
    {(by === 'gate' || by === 'overlap') && `, ${count(ahead)} before it`}, since <When at={since} only="relative" />
  </>
)

const About = ({ execution, cue, zone }: { execution: ExecutionDetail; cue?: CueDetail; zone?: string }) => {
  const { cue_id, created_at } = execution
  // A replay is a newer execution of the same cue.
  const newer = { cue_id, triggered_by: 'replay', limit: 50, count_to: 0, since: created_at }
  const replays = useRead<Executions>('/v1/executions', newer, { repeat: false }).data?.executions
  const replayed = replays?.filter(({ replayed_from }) => replayed_from === execution.id) ?? []
  const [previous, next] = useNeighbors(execution)
  const link = (id: string, text = id.slice(0, 13)) => (
    <a key={id} class="mono" href={to(`/executions/${id}`)}>
      {`${text} `}
    </a>
  )
  const worker = execution.claimed_by_worker
  const url = cue?.callback.url
  return (
    <Panel title="About">
      <Facts
        items={[
          [
            'Callback',
            url && (
              <>
                <code class="break">{`${cue.callback.method} ${url}`}</code>{' '}
                {url.startsWith(`${serviceUrl}/v1/echo/`) && (
                  <Button label="See what arrived" kind="quiet" onClick={() => show(<Echo url={url} />)} />
                )}
              </>
            )
          ],
          ['Waits for', execution.held && <Held {...execution.held} />],
          ['Triggered by', labelOf('triggerKind', execution.triggered_by)],
          ['Replay of', execution.replayed_from && link(execution.replayed_from)],
          ['Replayed by', replayed.length > 0 ? replayed.map(({ id }) => link(id)) : null],
          ['Worker', worker && <a href={to('/executions', { worker_id: worker })}>{worker}</a>],
          ['Lease until', execution.lease_expires_at && <When at={execution.lease_expires_at} />],
          ['Created', <When at={created_at} zone={zone} only="absolute" />],
          ['Other runs', (previous || next) && [previous && link(previous, 'previous'), next && link(next, 'next')]]
        ]}
      />
    </Panel>
  )
}

const Request = ({ execution, cue }: { execution: ExecutionDetail; cue: CueDetail }) => (
  <Panel title="Request" actions={<a href={`${serviceRoot}/docs/guide/delivery`}>How to verify the signature</a>}>
    <Tabs
      label="The request"
      tabs={[
        { name: 'As sent', body: () => <Code text={requestOf(execution, cue)} label="request" wrap /> },
        { name: 'curl, without a signature', body: () => <Code text={curlOf(execution, cue)} label="curl" /> }
      ]}
    />
  </Panel>
)
