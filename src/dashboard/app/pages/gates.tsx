/** Gates: limits that several cues share. */
import { useState } from 'preact/hooks'
import type { Gates as Answer, Execution, Executions, Gate, GateDetail, PutGate } from '../../../client/types.ts'
import { call, post } from '../api.ts'
import { labelOf, optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { duration } from '../time.ts'
import { Badge, Button, count, Empty, Facts, PageLink, Panel } from '../ui/basics.tsx'
import { act, askToRemove, Confirm, show } from '../ui/dialog.tsx'
import { CheckField, SelectField, TextField, useText } from '../ui/form.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink } from '../ui/results.tsx'
import type { Column } from '../ui/table.tsx'
import { Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

const path = (key: string) => `/gates/${encodeURIComponent(key)}`

/** The limits of a gate in words. */
const limitsOf = ({ parallel, rate, per, order, breaker, budget }: Gate): string =>
  [
    parallel !== null && `${count(parallel)} at once`,
    rate !== null && `${count(rate)} per ${per}`,
    order && 'in order',
    breaker && `breaker after ${count(breaker.failures)} failures`,
    budget && `${budget.limit} ${budget.unit} a ${budget.per}`
  ]
    .filter(Boolean)
    .join(', ') || 'no limit'

const columns: Column<Gate>[] = [
  [
    'Gate',
    ({ key, description }) => (
      <>
        <PageLink href={to(path(key))} text={key} />
        {description && <div class="under">{description}</div>}
      </>
    ),
    'cell-main'
  ],
  ['Limits', limitsOf],
  ['State', ({ paused_at }) => paused_at && <Badge tone="warn">paused</Badge>],
  ['Changed', ({ updated_at }) => <When at={updated_at} only="relative" />]
]

const text = 'A gate limits how many runs of the cues that name it go on at once, how many start in an interval, and in which order.'

export const GatesPage = () => {
  const read = useRead<Answer>('/v1/gates', { limit: 50, offset: useOffset() })
  const mayWrite = useMay('write')
  const create = mayWrite && (
    <Button label="Create a gate" icon="plus" kind="main" onClick={() => show(<GateDialog onDone={read.reload} />)} />
  )
  return (
    <Page title="Gates" read={read} actions={create}>
      {data => (
        <Paged page={data} rows={data.gates} {...{ columns }} caption="Gates" noun="gate" empty={<Empty title="No gates" text={text} />} />
      )}
    </Page>
  )
}

const partColumns = (key: string): Column<GateDetail['parts'][number]>[] => [
  ['Part', ({ part }) => <PageLink href={to(path(`${key}#${part}`))} text={part} />, 'cell-main'],
  ['Running', ({ running }) => count(running), 'number'],
  ['Waiting', ({ waiting }) => count(waiting), 'number'],
  ['Next start', ({ next_start_at }) => <When at={next_start_at} only="relative" isNext none="after an end" />]
]

const waitingColumns: Column<Execution>[] = [
  ['Run', ({ id, scheduled_for }) => <PageLink href={to(`/executions/${id}`)} text={<When at={scheduled_for} />} />, 'cell-main'],
  ['Cue', ({ cue_id, cue_name }) => <CueLink id={cue_id} name={cue_name} />],
  ['Waits since', ({ held }) => held && <When at={held.since} only="relative" />],
  ['Starts', ({ held }) => (held ? held.reason : 'now')]
]

/** The first runs that wait at a gate or part, in its order. */
const Waiting = ({ gate }: { gate: string }) => {
  const read = useRead<Executions>('/v1/executions', { gate, sort: 'due', limit: 20, count_to: 0 })
  const runs = read.data?.executions ?? []
  return (
    runs.length > 0 && (
      <Panel title="Next to start" flush>
        <Table rows={runs} columns={waitingColumns} caption="Waiting runs, the next first" />
      </Panel>
    )
  )
}

export const GatePage = ({ gate_key: key }: { gate_key: string }) => {
  const read = useRead<GateDetail>(`/v1${path(key)}`)
  const mayWrite = useMay('write')
  const { go } = usePlace()
  const remove = () =>
    askToRemove({
      title: `Delete ${key}`,
      text: 'Only a gate that no cue uses can be deleted.',
      done: 'The gate is deleted',
      action: () => call('DELETE', `/v1${path(key)}`).then(() => go(to('/gates')))
    })
  const resume = () => act(() => post(`/v1${path(key)}/resume`, {}).then(read.reload), 'Resumed')
  const gate = read.data
  const isHeld = gate && (gate.paused_at !== null || gate.breaker_state?.state === 'open')
  const isPart = key.includes('#')
  const actions = mayWrite && gate && !isPart && (
    <>
      {isHeld ? (
        <Button label="Resume" icon="play" onClick={() => void resume()} />
      ) : (
        <Button label="Pause" icon="pause" onClick={() => show(<PauseDialog gateKey={key} onDone={read.reload} />)} />
      )}
      <Button label="Edit" icon="edit" onClick={() => show(<GateDialog gate={gate} onDone={read.reload} />)} />
      <Button label="Delete" icon="trash" kind="quiet" iconOnly onClick={remove} />
    </>
  )
  return (
    <Page
      title={key}
      above={isPart ? { path: path(key.split('#')[0]!), name: key.split('#')[0]! } : { path: '/gates', name: 'Gates' }}
      read={read}
      actions={actions}
    >
      {data => (
        <div class="stack">
          {data.description && <p class="lead">{data.description}</p>}
          <Panel title="Now">
            <Facts items={factsOf(data)} />
          </Panel>
          {data.parts.length > 0 && (
            <Panel title="Busiest parts" flush>
              <Table rows={data.parts} columns={partColumns(key)} caption="Busiest parts" />
            </Panel>
          )}
          <Waiting gate={key} />
        </div>
      )}
    </Page>
  )
}

const factsOf = ({ breaker_state: breaker, ...gate }: GateDetail): Parameters<typeof Facts>[0]['items'] => [
  ['Limits', limitsOf(gate)],
  ['Running', count(gate.running)],
  ['Waiting', count(gate.waiting)],
  ['Oldest waits for', gate.oldest_waiting_seconds === null ? null : duration(gate.oldest_waiting_seconds * 1000)],
  ['Next start', gate.waiting === 0 ? null : <When at={gate.next_start_at} only="relative" isNext none="after an end" />],
  ['Longest wait', gate.max_wait],
  ['If a run fails', gate.order ? labelOf('gateOnFailure', gate.on_failure) : null],
  ['Breaker', breaker && <Badge tone={breaker.state === 'closed' ? 'good' : 'bad'}>{breaker.state}</Badge>],
  ['Failures in a row', breaker && count(breaker.failures)],
  ['Open until', breaker?.open_until && <When at={breaker.open_until} only="relative" isNext />],
  ['Spent', gate.budget && `${gate.spent} of ${gate.budget.limit} ${gate.budget.unit}, and ${gate.reserved} reserved`],
  ['Period ends', gate.period_ends_at && <When at={gate.period_ends_at} only="relative" isNext />],
  ['Paused', gate.paused_at && <When at={gate.paused_at} only="relative" />],
  ['Reason', gate.pause_reason],
  ['Resumes', gate.paused_until && <When at={gate.paused_until} only="relative" isNext />]
]

const PauseDialog = ({ gateKey, onDone }: { gateKey: string; onDone: () => void }) => {
  const reason = useText()
  const pause = () => post(`/v1${path(gateKey)}/pause`, reason.value.trim() ? { reason: reason.value.trim() } : {})
  return (
    <Confirm title={`Pause ${gateKey}`} label="Pause" done="Paused" action={pause} onDone={onDone}>
      <p>What runs goes on; nothing new starts until you resume it.</p>
      <TextField label="Reason (optional)" maxLength={500} {...reason} />
    </Confirm>
  )
}

const textOf = (value: number | string | null | undefined) => (value == null ? '' : String(value))
const numberOf = (text: string) => (text.trim() === '' ? null : Number(text))

/** Creates a gate, or changes one; settings that it has no field for stay. */
const GateDialog = ({ gate, onDone }: { gate?: Gate; onDone: () => void }) => {
  const [key, description] = [useText(gate?.key), useText(textOf(gate?.description))]
  const [parallel, rate, per] = [useText(textOf(gate?.parallel)), useText(textOf(gate?.rate)), useText(textOf(gate?.per))]
  const [failures, maxWait] = [useText(textOf(gate?.breaker?.failures)), useText(gate?.max_wait ?? '24h')]
  const [onFailure, setOnFailure] = useState(gate?.on_failure ?? 'continue')
  const [order, setOrder] = useState(gate?.order ?? false)
  const body: PutGate = {
    parallel: numberOf(parallel.value),
    rate: numberOf(rate.value),
    per: per.value.trim() || null,
    order,
    on_failure: order ? onFailure : 'continue',
    breaker: failures.value.trim() === '' ? null : { ...gate?.breaker, failures: Number(failures.value) },
    budget: gate?.budget ?? null,
    max_wait: maxWait.value.trim(),
    description: description.value.trim() || null
  }
  const [title, label] = gate ? [`Edit ${gate.key}`, 'Save'] : ['Create a gate', 'Create']
  const put = () => call('PUT', `/v1${path(gate?.key ?? key.value.trim())}`, { body })
  return (
    <Confirm title={title} label={label} done="Saved" action={put} onDone={onDone}>
      {!gate && <TextField label="Key" placeholder="openai" required maxLength={255} {...key} hint="Letters, digits and . _ : / -" />}
      <TextField label="Runs at once" type="number" min={1} max={1000} hint="Leave it empty for any number." {...parallel} />
      <TextField label="Starts" type="number" min={1} max={10_000} {...rate} />
      <TextField label="in any interval of" placeholder="10s" hint="1s to 31d" {...per} />
      <CheckField label="In order: one after another, first due first" checked={order} onInput={setOrder} />
      {order && (
        <SelectField
          label="If a run fails"
          options={optionsOf('gateOnFailure')}
          value={onFailure}
          onInput={value => setOnFailure(value as Gate['on_failure'])}
        />
      )}
      <TextField label="Breaker: failures in a row" type="number" min={1} max={1000} hint="Leave it empty for none." {...failures} />
      <TextField label="Longest wait" hint="1s to 31d; then a run is missed." {...maxWait} />
      <TextField label="Description" maxLength={2000} {...description} />
    </Confirm>
  )
}
