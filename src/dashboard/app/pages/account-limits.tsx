/** Where the operator changes an account's plan and limits. */
import { useState } from 'preact/hooks'
import type { OperatorAccount } from '../../../client/types.ts'
import { call, get } from '../api.ts'
import { optionsOf } from '../labels.ts'
import { Badge, Button, count, Panel } from '../ui/basics.tsx'
import { act, Form } from '../ui/dialog.tsx'
import { SelectField, TextField, useText } from '../ui/form.tsx'
import { type Column, List } from '../ui/table.tsx'

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
