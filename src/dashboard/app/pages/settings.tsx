/** The account's settings, and this browser's. */

import { useState } from 'preact/hooks'
import type { Me } from '../../../client/types.ts'
import { call } from '../api.ts'

import { useMay, useMe } from '../session.ts'
import { setTheme, type Theme, useTheme } from '../theme.ts'
import { localZone, setZone, useZone, type ZoneChoice } from '../time.ts'
import { Button, Facts, Panel } from '../ui/basics.tsx'
import { useAction } from '../ui/dialog.tsx'
import { CheckField, Choice, TextField } from '../ui/form.tsx'
import { Page } from '../ui/frame.tsx'
import { When } from '../ui/when.tsx'

export const Settings = () => {
  const me = useMe()
  const mayManage = useMay('account')
  const zone = useZone()
  const theme = useTheme()
  return (
    <Page title="Settings">
      <Panel title="This browser">
        <Choice
          label="Show times in"
          value={zone}
          onInput={value => setZone(value as ZoneChoice)}
          options={[
            { value: 'cue', label: "the cue's zone" },
            { value: 'local', label: `my zone, ${localZone()}` },
            { value: 'utc', label: 'UTC' }
          ]}
        />
        <Choice
          label="Theme"
          value={theme}
          onInput={value => setTheme(value as Theme)}
          options={[
            { value: 'system', label: 'system' },
            { value: 'light', label: 'light' },
            { value: 'dark', label: 'dark' }
          ]}
        />
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
      {mayManage && <Delivery me={me} />}
    </Page>
  )
}

const Delivery = ({ me }: { me: Me }) => {
  const [url, setUrl] = useState(me.alert_webhook_url ?? '')
  const [sendsKey, setSendsKey] = useState(me.webhook_authorization === 'api_key')
  const { busy, failure, run } = useAction()
  const save = (event: Event) => {
    event.preventDefault()
    void run(
      () =>
        call('PATCH', '/v1/auth/me', {
          body: { alert_webhook_url: url.trim(), webhook_authorization: sendsKey ? 'api_key' : 'execution_token' }
        }),
      'Saved'
    )
  }
  return (
    <Panel title="Alerts and webhooks">
      <form onSubmit={save}>
        <TextField
          label="Send alerts to"
          type="url"
          placeholder="https://example.com/alerts"
          value={url}
          onInput={setUrl}
          error={failure?.message}
          hint="Each alert is sent to this URL as a signed webhook. Leave it empty to send none."
        />
        <CheckField
          label="Webhooks carry the default API key"
          checked={sendsKey}
          onInput={setSendsKey}
          hint="Otherwise each carries a token that is valid only for its execution, which is safer."
        />
        <div class="actions left">
          <Button label="Save" type="submit" kind="main" busy={busy} />
        </div>
      </form>
    </Panel>
  )
}
