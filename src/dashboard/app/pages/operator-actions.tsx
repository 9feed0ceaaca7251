/** What the operator does: the stop button, the questions of sql/README.md, "On call", and the plans and limits of accounts. */
import { useState } from 'preact/hooks'
import type { Operator, OperatorAccount, OperatorAnswer } from '../../../client/types.ts'
import { call, get, post } from '../api.ts'
import { optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { Badge, Button, bytes, type Children, count, Facts, Loading, Panel, Problem } from '../ui/basics.tsx'
import { act, Form } from '../ui/dialog.tsx'
import { SelectField, TextField, useText } from '../ui/form.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

type HoldsProps = { operator: Pick<Operator, 'hold' | 'held_accounts'>; onDone: () => void }

export const Holds = ({ operator: { hold, held_accounts }, onDone }: HoldsProps) => {
  const reason = useText()
  const account = useText()
  const release = (account_id?: string) => act(() => post('/v1/operator/release', { account_id }).then(onDone), 'Released')
  const finish = () => {
    reason.onInput('')
    account.onInput('')
    onDone()
  }
  const holds = [...(hold ? [{ ...hold, account_id: undefined, email: 'Everything' }] : []), ...held_accounts]
  return (
    <Panel title={hold ? 'The service is held' : 'Stop everything'}>
      {holds.map(({ account_id, email, reason, by, since }) => (
        <div key={account_id ?? 'service'} class="stack">
          <Facts
            items={[
              ['Held', [<Badge tone="bad">{email}</Badge>, ' ', account_id && <span class="mono">{account_id}</span>]],
              ['Reason', reason],
              ['By', <span class="mono">{by}</span>],
              ['Since', <When at={since} />]
            ]}
          />
          <div class="row">
            <Button label={account_id ? `Release ${email}` : 'Release the service'} kind="main" onClick={() => void release(account_id)} />
          </div>
        </div>
      ))}
      <Form
        label="Hold"
        kind="danger"
        done="Held"
        action={() => post('/v1/operator/hold', { reason: reason.value.trim(), account_id: account.value.trim() || undefined })}
        onDone={finish}
      >
        <TextField
          label="Reason"
          required
          maxLength={500}
          {...reason}
          hint="Everybody can read it, as in /status. Nothing is taken, sent or claimed until the release; what is in flight ends."
        />
        <TextField label="Only this account" mono {...account} hint="Its id. Empty: the whole service." />
      </Form>
    </Panel>
  )
}

export const OnCall = ({ questions }: Pick<Operator, 'questions'>) => {
  const name = useText(questions[0]!.name)
  const cue = useText()
  const [query, setQuery] = useState<{ path: string; cue_id?: string }>()
  const { needs_cue } = questions.find(question => question.name === name.value)!
  const read = useRead<OperatorAnswer>(query?.path, { cue_id: query?.cue_id }, { repeat: false })
  const ask = async () => {
    const next = { path: `/v1/operator/on-call/${name.value}`, ...(needs_cue && { cue_id: cue.value.trim() }) }
    if (query?.path === next.path && query.cue_id === next.cue_id) read.reload()
    else setQuery(next)
  }
  return (
    <>
      <Panel title="On call">
        <Form label="Answer" action={ask}>
          <SelectField label="Question" {...name} options={questions.map(({ name, text }) => ({ value: name, label: text }))} />
          {needs_cue && <TextField label="Cue" required mono placeholder="cue_…" {...cue} />}
        </Form>
        <Problem failure={read.failure} />
      </Panel>
      {query && !read.failure && (read.data ? <Rows {...read.data} /> : <Loading lines={2} />)}
    </>
  )
}

/** Rows of any kind, under the names of their columns. */
export const Rows = ({ question, rows }: OperatorAnswer) => {
  const columns = [...new Set(rows.flatMap(Object.keys))]
  if (columns.length > 10)
    return (
      <Panel title={question}>
        {rows.map((row, n) => (
          <Facts key={n} items={columns.map(column => [column, row[column] ? shown(column, row[column]) : null])} />
        ))}
      </Panel>
    )
  const isNumber = (column: string) => rows.every(row => typeof (row[column] ?? 0) === 'number')
  return (
    <List
      title={question}
      none="Nothing."
      rows={rows}
      columns={columns.map(
        (column, n): Column<Record<string, unknown>> => [
          column,
          row => shown(column, row[column]),
          n === 0 ? 'cell-main' : isNumber(column) ? 'number' : ''
        ]
      )}
    />
  )
}

const shown = (column: string, value: unknown): Children => {
  if (value === null || value === undefined) return '–'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return column.includes('bytes') ? bytes(value) : count(value)
  if (typeof value === 'object') return <span class="mono">{JSON.stringify(value)}</span>
  return /^\d{4}-\d\d-\d\dT/.test(String(value)) ? <When at={String(value)} only="absolute" /> : String(value)
}

const names =
  'cues executions_per_month fires_per_hour requests_per_minute open_deliveries max_timeout_seconds min_interval_seconds payload_bytes_per_day'.split(
    ' '
  )
const limitsText = ({ limits }: OperatorAccount) =>
  Object.entries(limits)
    .map(([name, limit]) => `${name}: ${limit === null ? 'none' : count(Number(limit))}`)
    .join(', ') || '–'

/** Who it is, in lists of accounts. */
export const accountColumns: Column<Pick<OperatorAccount, 'email' | 'id' | 'plan'>>[] = [
  ['Account', ({ email, id }) => [<span class="name">{email}</span>, <div class="under mono">{id}</div>], 'cell-main'],
  ['Plan', ({ plan }) => <Badge tone="info">{plan}</Badge>]
]

export const AccountLimits = () => {
  const search = useText()
  const [accounts, setAccounts] = useState<OperatorAccount[]>()
  const [chosen, choose] = useState<OperatorAccount>()
  const find = async () => {
    choose(undefined)
    setAccounts((await get<{ accounts: OperatorAccount[] }>('/v1/operator/accounts', { search: search.value.trim() })).accounts)
  }
  return (
    <>
      <Panel title="Plans and limits of accounts">
        <Form label="Find accounts" action={find}>
          <TextField label="Account" {...search} hint="Part of its email address, or its id. Empty: the first 100." />
        </Form>
        {chosen && <Change key={chosen.id} account={chosen} onDone={() => void act(find)} />}
      </Panel>
      {accounts && (
        <List
          title="Accounts"
          none="No account matches."
          rows={accounts}
          columns={[
            ...accountColumns,
            ['Overrides', limitsText],
            ['', account => <Button label={`Change ${account.email}`} onClick={() => choose(account)} />]
          ]}
        />
      )}
    </>
  )
}

const Change = ({ account, onDone }: { account: OperatorAccount; onDone: () => void }) => {
  const plan = useText(account.plan)
  const { value: name, onInput: setName } = useText(names[0])
  const limit = useText()
  const change = (body: object) => call('PATCH', `/v1/operator/accounts/${account.id}`, { body })
  const remove = () => act(() => change({ limits: { [name]: null } }).then(onDone), 'Saved')
  return (
    <Form
      label="Save"
      done="Saved"
      action={() => change({ plan: plan.value, ...(limit.value.trim() && { limits: { [name]: Number(limit.value) } }) })}
      onDone={onDone}
      beside={name in account.limits && <Button label={`Remove the override of ${name}`} onClick={() => void remove()} />}
    >
      <SelectField label={`Plan of ${account.email}`} {...plan} options={optionsOf('plan')} />
      <SelectField label="Limit" value={name} onInput={setName} options={names.map(value => ({ value, label: value }))} />
      <TextField label="Its value" type="number" {...limit} hint="Instead of that of the plan. Empty: only the plan changes." />
    </Form>
  )
}
