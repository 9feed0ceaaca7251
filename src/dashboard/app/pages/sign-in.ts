/** Signing in with an API key, or with an email link. */

import { useEffect, useState } from 'preact/hooks'
import type { PolledDeviceCode } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { isLocal, outboxFolder, serviceRoot, serviceUrl } from '../root.ts'
import { signIn } from '../session.ts'
import { Button, Code, Tabs, useTitle } from '../ui/basics.ts'
import { useAction } from '../ui/dialog.ts'
import { TextField } from '../ui/form.ts'
import { Logo } from '../ui/icon.ts'

type Props = { problem?: string; onSignedIn: () => void }
type Waiting = { code: string; email: string }

export const SignIn = ({ problem, onSignedIn }: Props) => {
  useTitle('Sign in')
  const [waiting, setWaiting] = useState<Waiting>()
  const [newKey, setNewKey] = useState<string>()
  return h(
    'main',
    { class: 'sign-in', id: 'main' },
    h(
      'div',
      { class: 'sign-in-box' },
      h(
        'div',
        { class: 'sign-in-brand' },
        h(Logo, { size: 44 }),
        h('h1', {}, newKey ? 'Your account is ready' : waiting ? 'Check your mail' : 'Sign in to pgcue')
      ),
      problem && h('p', { class: 'problem bad', role: 'alert' }, problem),
      newKey
        ? h(NewKey, { apiKey: newKey, onSignedIn })
        : waiting
          ? h(WaitForLink, { ...waiting, onBack: () => setWaiting(undefined), onSignedIn, onNewKey: setNewKey })
          : h(Tabs, {
              label: 'Ways to sign in',
              tabs: [
                { name: 'API key', body: () => h(WithKey, { onSignedIn }) },
                { name: 'Email link', body: () => h(WithMail, { onSent: setWaiting }) }
              ]
            }),
      isLocal &&
        !waiting &&
        !newKey &&
        h('p', { class: 'hint' }, 'When the service starts on this machine, it prints a link that signs you in.')
    ),
    h(
      'p',
      { class: 'sign-in-foot' },
      h('a', { href: `${serviceRoot}/docs` }, 'API reference'),
      h('a', { href: `${serviceRoot}/plans` }, 'Plans')
    )
  )
}

const WithKey = ({ onSignedIn }: { onSignedIn: () => void }) => {
  const [key, setKey] = useState('')
  const { busy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    if (await run(() => signIn({ api_key: key.trim() }))) onSignedIn()
  }
  return h(
    'form',
    { onSubmit: submit },
    h(TextField, {
      label: 'API key',
      type: 'password',
      name: 'api_key',
      autocomplete: 'current-password',
      placeholder: 'svc_sk_…',
      required: true,
      mono: true,
      value: key,
      onInput: setKey,
      error: failure?.message,
      hint: 'The browser keeps a session, not the key.'
    }),
    h(Button, { label: 'Sign in', kind: 'main', type: 'submit', busy }),
    h(
      'details',
      { class: 'more' },
      h('summary', {}, 'No key yet?'),
      h('p', {}, 'Sign in with an email link, or create an account from a terminal:'),
      h(Code, {
        label: 'curl',
        text: `curl ${serviceUrl}/v1/auth/register \\\n  -H 'content-type: application/json' \\\n  -d '{"email": "you@example.com"}'`
      })
    )
  )
}

/** 128 random bits. */
const newCode = () =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')

const WithMail = ({ onSent }: { onSent: (waiting: Waiting) => void }) => {
  const [email, setEmail] = useState('')
  const { busy, failure, run } = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    const code = newCode()
    const sent = await run(async () => {
      await post('/v1/auth/device-code', { device_code: code })
      await post('/v1/auth/device-code/submit-email', { device_code: code, email: email.trim() })
    })
    if (sent) onSent({ code, email: email.trim() })
  }
  return h(
    'form',
    { onSubmit: submit },
    h(TextField, {
      label: 'Email address',
      type: 'email',
      name: 'email',
      autocomplete: 'email',
      placeholder: 'you@example.com',
      required: true,
      maxLength: 254,
      value: email,
      onInput: setEmail,
      error: failure && (failure.fields.email ?? failure.message),
      hint: 'If the address has no account yet, this creates one.'
    }),
    h(Button, { label: 'Send me a link', kind: 'main', type: 'submit', busy })
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
  return h(
    'div',
    { class: 'stack' },
    outboxFolder &&
      h('p', { class: 'hint' }, `This service has no mail server: the mail is written to ${outboxFolder}, and its link is in the log.`),
    h('p', {}, 'We sent a link to ', h('strong', {}, email), '. Open it within 15 minutes, on any device, and compare this code:'),
    h('p', { class: 'device-code mono' }, code),
    problem
      ? h('p', { class: 'field-error', role: 'alert' }, problem)
      : h('p', { class: 'hint', role: 'status' }, 'This page continues by itself once you have confirmed.'),
    h(Button, { label: 'Use another address', onClick: onBack })
  )
}

const NewKey = ({ apiKey, onSignedIn }: { apiKey: string; onSignedIn: () => void }) =>
  h(
    'div',
    { class: 'stack' },
    h('p', {}, 'This is your first API key, for programs. Keep it in a safe place; the Keys page can show it again.'),
    h(Code, { text: apiKey, label: 'API key', wrap: true }),
    h(Button, { label: 'Open the dashboard', kind: 'main', onClick: onSignedIn })
  )
