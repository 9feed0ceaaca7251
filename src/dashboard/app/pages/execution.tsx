/** One execution: its path through the states, every attempt, and what to do with it. */

import { useState } from 'preact/hooks'
import type { CueDetail, ExecutionDetail, Executions, Replayed } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay } from '../session.ts'
import { duration, useZone, zoneFor } from '../time.ts'
import { Badge, Button, Code, Copy, Facts, Loading, Panel, Problem, Tabs } from '../ui/basics.tsx'
import { act, Confirm } from '../ui/dialog.tsx'
import { Above, Page } from '../ui/frame.tsx'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.tsx'
import { say } from '../ui/toast.tsx'
import { When } from '../ui/when.tsx'
import { zoneOf } from './cues.tsx'
import { Evidence, VerifyButtons } from './evidence.tsx'
import { isRunning, whileMoving } from './executions.tsx'
import { curlOf, requestOf, verifyCode } from './request-code.ts'
import { StateDiagram, Steps } from './timeline.tsx'

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
    return (
      <Page title="Execution" above={<Above path="/executions" name="Executions" />}>
        {read.failure ? <Problem failure={read.failure} /> : <Loading />}
      </Page>
    )
  const zone = cue && zoneOf(cue)
  return (
    <Page
      title={`Execution of ${execution.cue_name}`}
      heading={<CueLink id={execution.cue_id} name={execution.cue_name} />}
      above={<Above path="/executions" name="Executions" />}
      read={read}
      about={
        <>
          <StatusBadge of={execution} />
          <OutcomeBadge state={execution.outcome_state} />
          <When at={execution.scheduled_for} zone={zone} />
          <span class="mono id">
            {execution.id}
            <Copy text={execution.id} label="Copy the id" />
          </span>
        </>
      }
      actions={
        mayWrite && (
          <>
            {hasEnded && <Button label="Replay" icon="replay" kind="main" shortcut="r" onClick={() => void replay()} />}
            {waiting.includes(execution.status) && <Button label="Cancel" icon="stop" onClick={() => ask('cancel')} />}
          </>
        )
      }
    >
      <Problem failure={read.failure} />
      {execution.error_message && (
        <p class="problem bad">
          <span>
            <strong>{'Error. '}</strong>
            {execution.error_message}
          </span>
        </p>
      )}
      <StateDiagram execution={execution} transport={cue?.transport} />
      <div class="columns">
        <div class="stack">
          <Panel title="Timeline">
            <Steps execution={execution} zone={zoneFor(useZone(), zone)} />
          </Panel>
          <Attempts execution={execution} zone={zone} />
          {execution.outcome && (
            <Panel
              title="Outcome"
              actions={execution.outcome_state === 'verification_pending' && <VerifyButtons id={id} onDone={read.reload} />}
            >
              <Evidence outcome={execution.outcome} />
            </Panel>
          )}
        </div>
        <div class="stack">
          <Links execution={execution} zone={zone} />
          <Panel title="Payload">
            <Code text={JSON.stringify(execution.payload, null, 2)} label="payload" />
          </Panel>
          {execution.response_body !== null && (
            <Panel title="Latest response">
              <Code text={execution.response_body} label="response" wrap />
            </Panel>
          )}
          {cue?.transport === 'webhook' && <Request execution={execution} cue={cue} />}
        </div>
      </div>
      {asked === 'cancel' && (
        <Confirm
          title="Cancel this execution"
          label="Cancel the execution"
          kind="danger"
          onClose={() => ask(undefined)}
          done="Cancelled"
          action={() => post(`/v1/executions/${id}/cancel`).then(read.reload)}
        >
          <p>It ends without another attempt.</p>
        </Confirm>
      )}
    </Page>
  )
}

const Attempts = ({ execution, zone }: { execution: ExecutionDetail; zone?: string }) => {
  if (execution.attempt_log.length === 0) return null
  const longest = Math.max(...execution.attempt_log.map(({ duration_ms }) => duration_ms), 1)
  return (
    <Panel title="Attempts" flush>
      <table class="table attempts">
        <thead>
          <tr>
            {['#', 'Started', 'Result', 'Response', 'Took'].map(name => (
              <th key={name} scope="col" class={name === 'Took' ? 'number' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {execution.attempt_log.map(({ attempt, started_at, result, http_status, error, duration_ms, worker_id }) => (
            <tr key={`${attempt} ${started_at}`}>
              <td>{attempt}</td>
              <td>
                <When at={started_at} zone={zone} only="absolute" />
              </td>
              <td>
                <Badge tone={result === 'success' ? 'good' : result === 'lost' ? 'warn' : 'bad'}>{result}</Badge>
              </td>
              <td class="cell-main">
                {http_status !== null && <span class="mono">{`HTTP ${http_status}`}</span>}
                {worker_id && <span class="mono">{worker_id}</span>}
                {error && <div class="under">{error}</div>}
              </td>
              <td class="number">
                {duration(duration_ms)}
                <meter class="took" min={0} max={longest} value={duration_ms} aria-label={`${duration_ms} ms`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
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
  return (
    <Panel title="About">
      <Facts
        items={
          [
            ['Triggered by', execution.triggered_by.replaceAll('_', ' ')],
            [
              'Replay of',
              execution.replayed_from && (
                <a class="mono" href={to(`/executions/${execution.replayed_from}`)}>
                  {execution.replayed_from.slice(0, 13)}
                </a>
              )
            ],
            [
              'Replayed by',
              replays.length > 0 &&
                replays.map(({ id }) => <a key={id} class="mono" href={to(`/executions/${id}`)}>{`${id.slice(0, 13)} `}</a>)
            ],
            ['Attempts', execution.attempts],
            [
              'Worker',
              execution.claimed_by_worker && (
                <a href={to('/executions', { worker_id: execution.claimed_by_worker })}>{execution.claimed_by_worker}</a>
              )
            ],
            ['Lease until', execution.lease_expires_at && <When at={execution.lease_expires_at} />],
            ['Next retry', execution.next_retry && <When at={execution.next_retry} isNext />],
            ['Created', <When at={execution.created_at} zone={zone} only="absolute" />]
          ].filter(([, value]) => value !== false) as [string, string][]
        }
      />
    </Panel>
  )
}

const Request = ({ execution, cue }: { execution: ExecutionDetail; cue: CueDetail }) => (
  <Panel title="Request">
    <Tabs
      label="The request"
      tabs={[
        { name: 'As sent', body: () => <Code text={requestOf(execution, cue)} label="request" wrap /> },
        {
          name: 'curl',
          body: () => (
            <>
              <p class="hint">Sends the same body, without the signature.</p>
              <Code text={curlOf(execution, cue)} label="curl" />
            </>
          )
        },
        ...Object.entries(verifyCode).map(([name, text]) => ({
          name,
          body: () => (
            <>
              <p class="hint">Verifies the signature.</p>
              <Code text={text} label={name} />
            </>
          )
        }))
      ]}
    />
  </Panel>
)
