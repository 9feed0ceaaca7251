/** The account's settings, and this browser's. */
import { useState } from 'preact/hooks'
import type { Me } from '../../../client/types.ts'
import { call } from '../api.ts'
import { options } from '../labels.ts'
import { useMay, useMe } from '../session.ts'
import { setTheme, type Theme, theme, themes } from '../theme.ts'
import { localZone, setZone, useZone, type ZoneChoice } from '../time.ts'
import { Facts, Panel } from '../ui/basics.tsx'
import { Form } from '../ui/dialog.tsx'
import { CheckField, Choice, TextField, useText } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'

export const Settings = () => {
  const me = useMe()
  const zoneOptions = [
    { value: 'cue', label: "the cue's zone" },
    { value: 'local', label: `my zone, ${localZone()}` },
    { value: 'utc', label: 'UTC' }
  ]
  return (
    <Page title="Settings">
      <div class="stack">
        <Panel title="This browser">
          <Choice label="Show times in" value={useZone()} onInput={value => setZone(value as ZoneChoice)} options={zoneOptions} />
          <Choice label="Theme" value={theme.value} onInput={value => setTheme(value as Theme)} options={options(themes)} />
        </Panel>
        <Panel title="Account">
          <Facts
            items={[
              ['Email', me.email],
              ['Account', <span class="mono break">{me.id}</span>],
              ['Since', <When at={me.created_at} only="absolute" />],
              ['Session scopes', me.scopes.join(', ')]
            ]}
          />
        </Panel>
        {useMay('account') && <Delivery me={me} />}
      </div>
    </Page>
  )
}

const Delivery = ({ me }: { me: Me }) => {
  const url = useText(me.alert_webhook_url ?? '')
  const [sendsKey, setSendsKey] = useState(me.webhook_authorization === 'api_key')
  const [byLink, setByLink] = useState(me.approvals_by_link)
  const mayApprove = useMay('approve')
  const approvals = mayApprove && { approvals_by_link: byLink }
  const body = { alert_webhook_url: url.value.trim(), webhook_authorization: sendsKey ? 'api_key' : 'execution_token', ...approvals }
  return (
    <Panel title="Alerts and webhooks">
      <Form label="Save" done="Saved" action={() => call('PATCH', '/v1/auth/me', { body })}>
        <TextField
          label="Send alerts to"
          type="url"
          placeholder="https://example.com/alerts"
          {...url}
          hint="Each alert is sent to this URL as a signed webhook. Leave it empty to send none."
        />
        <CheckField
          label="Webhooks carry the default API key"
          checked={sendsKey}
          onInput={setSendsKey}
          hint="Otherwise each carries a token that is valid only for its execution, which is safer."
        />
        {mayApprove && (
          <CheckField
            label="The link in a message can approve and reject"
            checked={byLink}
            onInput={setByLink}
            hint="Otherwise it leads to the dashboard, and deciding requires signing in."
          />
        )}
      </Form>
    </Panel>
  )
}
