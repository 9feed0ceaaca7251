/** Where the operator changes an account's plan and limits. */
import { useState } from 'preact/hooks'
import type { OperatorAccount } from '../../../client/types.ts'
import { call, get } from '../api.ts'

import { Badge, Button, count, Panel } from '../ui/basics.tsx'
import { useAction } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/form.tsx'
import { List } from '../ui/table.tsx'

const plans = ['free', 'pro', 'scale']
const names = [
  'cues',
  'executions_per_month',
  'fires_per_hour',
  'requests_per_minute',
  'open_deliveries',
  'max_timeout_seconds',
  'min_interval_seconds',
  'payload_bytes_per_day'
]
const limitsText = ({ limits }: OperatorAccount) =>
  Object.entries(limits).map(([name, limit]) => `${name}: ${limit === null ? 'none' : count(Number(limit))}`)

export const AccountLimits = () => {
  const [search, setSearch] = useState('')
  const [accounts, setAccounts] = useState<OperatorAccount[]>()
  const [chosen, setChosen] = useState<OperatorAccount>()
  const { busy, failure, run } = useAction()
  const find = () =>
    run(async () => setAccounts((await get<{ accounts: OperatorAccount[] }>('/v1/operator/accounts', { search: search.trim() })).accounts))
  const restart = () => {
    setChosen(undefined)
    void find()
  }
  const submit = (event: Event) => {
    event.preventDefault()
    restart()
  }
  return (
    <>
      <Panel title="Plans and limits of accounts">
        <form onSubmit={submit}>
          <TextField
            label="Account"
            value={search}
            onInput={setSearch}
            error={failure?.message}
            hint="Part of its email address, or its id. Empty: the first 100."
          />
          <div class="actions left">
            <Button label="Find accounts" type="submit" busy={busy} />
          </div>
        </form>
        {chosen && <Change key={chosen.id} account={chosen} onDone={restart} />}
      </Panel>
      {accounts && (
        <List
          title="Accounts"
          columns={['Account', 'Plan', 'Overrides', '']}
          none="No account matches."
          rows={accounts.map(account => [
            [<span class="name">{account.email}</span>, <div class="under mono">{account.id}</div>],
            <Badge tone="info">{account.plan}</Badge>,
            limitsText(account).join(', ') || '–',
            <Button label={`Change ${account.email}`} onClick={() => setChosen(account)} />
          ])}
        />
      )}
    </>
  )
}

const Change = ({ account, onDone }: { account: OperatorAccount; onDone: () => void }) => {
  const [plan, setPlan] = useState<string>(account.plan)
  const [name, setName] = useState(names[0]!)
  const [limit, setLimit] = useState('')
  const { busy, failure, run } = useAction()
  const change = async (body: object) => {
    if (await run(() => call('PATCH', `/v1/operator/accounts/${account.id}`, { body }), 'Saved')) onDone()
  }
  const submit = (event: Event) => {
    event.preventDefault()
    void change({ plan, ...(limit.trim() && { limits: { [name]: Number(limit) } }) })
  }
  return (
    <form onSubmit={submit}>
      <SelectField
        label={`Plan of ${account.email}`}
        value={plan}
        onInput={setPlan}
        options={plans.map(value => ({ value, label: value }))}
      />
      <SelectField label="Limit" value={name} onInput={setName} options={names.map(value => ({ value, label: value }))} />
      <TextField
        label="Its value"
        type="number"
        value={limit}
        onInput={setLimit}
        error={failure?.message}
        hint="Instead of that of the plan. Empty: only the plan changes."
      />
      <div class="actions left">
        <Button label="Save" kind="main" type="submit" busy={busy} />
        {name in account.limits && (
          <Button label={`Remove the override of ${name}`} busy={busy} onClick={() => void change({ limits: { [name]: null } })} />
        )}
      </div>
    </form>
  )
}
