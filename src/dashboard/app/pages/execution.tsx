/** One execution: its path through the states, every attempt, and what to do with it. */

import { useState } from 'preact/hooks'
import type { CueDetail, ExecutionDetail, Executions, Replayed } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useShortcuts } from '../keys.ts'
import { labelOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { duration, useZone, zoneFor } from '../time.ts'
import { Badge, Button, Code, Copy, Facts, Panel, Tabs } from '../ui/basics.tsx'
import { act, Confirm } from '../ui/dialog.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.tsx'
import { type Column, List } from '../ui/table.tsx'
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
  const [isCancelling, setCancelling] = useState(false)
  const { go } = usePlace()
  const hasEnded = execution && !isRunning(execution)
  const replay = () =>
    act(async () => {
      const { execution_id } = await post<Replayed>(`/v1/executions/${id}/replay`, undefined, { 'idempotency-key': crypto.randomUUID() })
      say('Replayed as a new execution.')
      go(to(`/executions/${execution_id}`))
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
            <span class="mono soft">{execution.id}</span>
            <Copy text={execution.id} label="Copy the id" />
          </>
        )
      }
      actions={
        mayWrite &&
        execution && (
          <>
            {hasEnded && <Button label="Replay" icon="replay" kind="main" shortcut="r" onClick={() => void replay()} />}
            {waiting.includes(execution.status) && <Button label="Cancel" icon="stop" onClick={() => setCancelling(true)} />}
          </>
        )
      }
    >
      {execution => (
        <>
          <Story execution={execution} cue={cue} reload={read.reload} />
          {isCancelling && (
            <Confirm
              title="Cancel this execution"
              label="Cancel the execution"
              kind="danger"
              onClose={() => setCancelling(false)}
              done="Cancelled"
              action={() => post(`/v1/executions/${id}/cancel`).then(read.reload)}
            >
              <p>It ends without another attempt.</p>
            </Confirm>
          )}
        </>
      )}
    </Page>
  )
}

type StoryProps = { execution: ExecutionDetail; cue: CueDetail | undefined; reload: () => void }
const Story = ({ execution, cue, reload }: StoryProps) => {
  const zone = cue && zoneOf(cue)
  const isPending = execution.outcome_state === 'verification_pending'
  return (
    <>
      {execution.error_message && (
        <p class="problem bad">
          <span>
            <strong>Error.</strong> {execution.error_message}
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
            <Panel title="Outcome" actions={isPending && <VerifyButtons id={execution.id} onDone={reload} />}>
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
    </>
  )
}

type Attempt = ExecutionDetail['attempt_log'][number]
const attemptTones = { success: 'good', failed: 'bad', lost: 'warn' } as const
const Attempts = ({ execution: { attempt_log }, zone }: { execution: ExecutionDetail; zone?: string }) => {
  if (attempt_log.length === 0) return null
  const longest = Math.max(...attempt_log.map(({ duration_ms }) => duration_ms), 1)
  const columns: Column<Attempt>[] = [
    ['#', ({ attempt }) => attempt],
    ['Started', ({ started_at }) => <When at={started_at} zone={zone} only="absolute" />],
    ['Result', ({ result }) => <Badge tone={attemptTones[result]}>{result}</Badge>],
    [
      'Response',
      ({ http_status, worker_id, error }) => (
        <>
          <span class="mono">{http_status === null ? worker_id : `HTTP ${http_status}`}</span>
          {error && <div class="under">{error}</div>}
        </>
      ),
      'cell-main'
    ],
    [
      'Took',
      ({ duration_ms }) => (
        <>
          {duration(duration_ms)} <meter min={0} max={longest} value={duration_ms} aria-label={`${duration_ms} ms`} />
        </>
      ),
      'number'
    ]
  ]
  return <List title="Attempts" columns={columns} rows={attempt_log} />
}

const Links = ({ execution, zone }: { execution: ExecutionDetail; zone?: string }) => {
  // A replay is a newer execution of the same cue.
  const newer = useRead<Executions>(
    '/v1/executions',
    { cue_id: execution.cue_id, triggered_by: 'replay', limit: 50, count_to: 0, since: execution.created_at },
    { repeat: false }
  ).data
  const replays = newer?.executions.filter(({ replayed_from }) => replayed_from === execution.id) ?? []
  const link = (id: string) => (
    <a key={id} class="mono" href={to(`/executions/${id}`)}>
      {id.slice(0, 13)}{' '}
    </a>
  )
  const worker = execution.claimed_by_worker
  return (
    <Panel title="About">
      <Facts
        items={[
          ['Triggered by', labelOf('triggerKind', execution.triggered_by)],
          ['Replay of', execution.replayed_from && link(execution.replayed_from)],
          ['Replayed by', replays.length > 0 ? replays.map(({ id }) => link(id)) : null],
          ['Attempts', execution.attempts],
          ['Worker', worker && <a href={to('/executions', { worker_id: worker })}>{worker}</a>],
          ['Lease until', execution.lease_expires_at && <When at={execution.lease_expires_at} />],
          ['Next retry', execution.next_retry && <When at={execution.next_retry} isNext />],
          ['Created', <When at={execution.created_at} zone={zone} only="absolute" />]
        ]}
      />
    </Panel>
  )
}

const Request = ({ execution, cue }: { execution: ExecutionDetail; cue: CueDetail }) => {
  const tab = (name: string, text: string, hint?: string) => ({
    name,
    body: () => (
      <>
        {hint && <p class="hint">{hint}</p>}
        <Code text={text} label={hint ? name : 'request'} wrap={!hint} />
      </>
    )
  })
  return (
    <Panel title="Request">
      <Tabs
        label="The request"
        tabs={[
          tab('As sent', requestOf(execution, cue)),
          tab('curl', curlOf(execution, cue), 'Sends the same body, without the signature.'),
          ...Object.entries(verifyCode).map(([name, text]) => tab(name, text, 'Verifies the signature.'))
        ]}
      />
    </Panel>
  )
}
