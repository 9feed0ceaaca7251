/** Signing in with an API key, or with an email link. */
import { useEffect, useState } from 'preact/hooks'
import type { PolledDeviceCode } from '../../../client/types.ts'
import { post } from '../api.ts'
import { isLocal, outboxFolder, serviceRoot, serviceUrl } from '../root.ts'
import { signIn } from '../session.ts'
import { Button, Code, Refusal, Tabs, useTitle } from '../ui/basics.tsx'
import { Form } from '../ui/dialog.tsx'
import { TextField, useText } from '../ui/form.tsx'
import { Logo } from '../ui/icon.tsx'

type Props = { problem?: string; onSignedIn: () => void }
type Waiting = { code: string; email: string }

export const SignIn = ({ problem, onSignedIn }: Props) => {
  useTitle('Sign in')
  const [waiting, setWaiting] = useState<Waiting>()
  const [newKey, setNewKey] = useState<string>()
  return (
    <main class="sign-in" id="main">
      <div class="panel">
        <header>
          <Logo size={40} />
          <h1>{newKey ? 'Your account is ready' : waiting ? 'Check your mail' : 'Sign in to pgcue'}</h1>
        </header>
        {problem && (
          <p class="problem bad" role="alert">
            {problem}
          </p>
        )}
        {newKey ? (
          <NewKey apiKey={newKey} onSignedIn={onSignedIn} />
        ) : waiting ? (
          <WaitForLink {...waiting} onBack={() => setWaiting(undefined)} onSignedIn={onSignedIn} onNewKey={setNewKey} />
        ) : (
          <Tabs
            label="Ways to sign in"
            tabs={[
              { name: 'API key', body: () => <WithKey onSignedIn={onSignedIn} /> },
              { name: 'Email link', body: () => <WithMail onSent={setWaiting} /> }
            ]}
          />
        )}
        {isLocal && !waiting && !newKey && <p class="hint">When the service starts on this machine, it prints a link that signs you in.</p>}
      </div>
      <p class="row">
        <a href={`${serviceRoot}/docs`}>API reference</a>
        <a href={`${serviceRoot}/plans`}>Plans</a>
      </p>
    </main>
  )
}

const registerCall = `curl ${serviceUrl}/v1/auth/register \\\n  -H 'content-type: application/json' \\\n  -d '{"email": "you@example.com"}'`

const WithKey = ({ onSignedIn }: { onSignedIn: () => void }) => {
  const key = useText()
  return (
    <div class="stack">
      <Form label="Sign in" action={() => signIn({ api_key: key.value.trim() })} onDone={onSignedIn}>
        <TextField
          label="API key"
          type="password"
          name="api_key"
          autocomplete="current-password"
          placeholder="svc_sk_…"
          required
          mono
          {...key}
          hint="The browser keeps a session, not the key."
        />
      </Form>
      <details>
        <summary>No key yet?</summary>
        <p>Sign in with an email link, or create an account from a terminal:</p>
        <Code label="curl" text={registerCall} />
      </details>
    </div>
  )
}

/** 128 random bits. */
const newCode = () =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')

const WithMail = ({ onSent }: { onSent: (waiting: Waiting) => void }) => {
  const email = useText()
  const send = async () => {
    const code = newCode()
    await post('/v1/auth/device-code', { device_code: code })
    await post('/v1/auth/device-code/submit-email', { device_code: code, email: email.value.trim() })
    onSent({ code, email: email.value.trim() })
  }
  return (
    <Form label="Send me a link" action={send}>
      {failure => (
        <TextField
          label="Email address"
          type="email"
          name="email"
          autocomplete="email"
          placeholder="you@example.com"
          required
          maxLength={254}
          {...email}
          error={failure?.fields.email}
          hint="If the address has no account yet, this creates one."
        />
      )}
    </Form>
  )
}

type WaitProps = Waiting & { onBack: () => void; onSignedIn: () => void; onNewKey: (key: string) => void }

const WaitForLink = ({ code, email, onBack, onSignedIn, onNewKey }: WaitProps) => {
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let timer = 0
    let stopped = false
    const poll = async () => {
      try {
        const { status, session_token, api_key } = await post<PolledDeviceCode>('/v1/auth/device-code/poll', { device_code: code })
        if (stopped) return
        if (status === 'approved' && session_token) {
          await signIn({ token: session_token })
          return api_key ? onNewKey(api_key) : onSignedIn()
        }
        if (status === 'expired' || status === 'claimed') return setProblem('This link has expired. Start again.')
      } catch (error) {
        if (!stopped) setProblem((error as Error).message)
      }
      if (!stopped) timer = window.setTimeout(poll, 3000)
    }
    timer = window.setTimeout(poll, 1500)
    return () => {
      stopped = true
      clearTimeout(timer)
    }
  }, [code])
  return (
    <div class="stack">
      {outboxFolder && (
        <p class="hint">{`This service has no mail server: the mail is written to ${outboxFolder}, and its link is in the log.`}</p>
      )}
      <p>
        {'We sent a link to '}
        <strong>{email}</strong>. Open it within 15 minutes, on any device, and compare this code:
      </p>
      <p class="device-code mono">{code}</p>
      {problem ? (
        <Refusal text={problem} />
      ) : (
        <p class="hint" role="status">
          This page continues by itself once you have confirmed.
        </p>
      )}
      <Button label="Use another address" onClick={onBack} />
    </div>
  )
}

const NewKey = ({ apiKey, onSignedIn }: { apiKey: string; onSignedIn: () => void }) => (
  <div class="stack">
    <p>This is your first API key, for programs. Keep it in a safe place; the page Keys and secrets can show it again.</p>
    <Code text={apiKey} label="API key" wrap />
    <Button label="Open the dashboard" kind="main" onClick={onSignedIn} />
  </div>
)
