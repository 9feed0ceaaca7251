/** Pages for signing in a device: enter an email address, follow the link in the mail, compare the code, confirm. */
import type { DeviceLinkRow } from '../database/functions.ts'
import { html } from './html.ts'
import { counted, type Page, spoken } from './page.ts'

/** Asks for an email address. `problem` says why the previous one was rejected. */
export const askEmail = ({
  action,
  device_code,
  email = '',
  problem
}: {
  action: string
  device_code: string
  email?: string
  problem?: string
}): Page => ({
  title: 'Sign in',
  body: html`<p>A program wants to sign in with your email address. It shows this code:</p>
<strong class="code">${device_code}</strong>
<form method="post" action="${action}">
<input type="hidden" name="device_code" value="${device_code}">
<label for="email">Your email address</label>
<input id="email" name="email" type="email" autocomplete="email" required maxlength="254" value="${email}"${problem && html` aria-invalid="true"`} aria-describedby="${problem && 'problem '}hint">
${problem && html`<p id="problem" class="alarm" role="alert">${problem}</p>`}
<button>Send me a link</button>
<p id="hint" class="soft">The link confirms that the address is yours. If you have no account yet, this creates one.</p>
</form>`
})

/** @param outbox folder that mails are written to while SMTP_URL is unset */
export const mailSent = (outbox: string | null, email?: string): Page => ({
  title: 'Check your mail',
  body: html`<p>We sent a link to ${email ?? 'the given address'}. Open it within 15 minutes, on any device.</p>
<p class="soft">${
    outbox
      ? `This service has no mail server: the mail is written to ${outbox}, and its link is in the log.`
      : 'If it does not arrive, check your spam folder, or start again on your device.'
  }</p>`
})

/** Shows which device wants to sign in, with one button. */
export const confirmSignIn = ({
  action,
  token,
  device_code,
  link
}: {
  action: string
  token: string
  device_code: string
  link: Omit<DeviceLinkRow, 'status'>
}): Page => ({
  title: 'Is this your device?',
  body: html`<p>Confirm only if you started this yourself and your device shows this code:</p>
<strong class="code">${device_code}</strong>
<dl>
<dt>Account</dt><dd>${link.email}</dd>
<dt>Requested</dt><dd>${spoken(link.created_at)}${link.ip && html`, from ${link.ip}`}</dd>
</dl>
<p class="soft">${
    link.account_created_at
      ? `This account was created on ${spoken(link.account_created_at)} and has ${counted(link.active_keys, 'active API key')}.`
      : 'This address has no account yet. Confirming creates one, with an API key for the device.'
  }</p>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<input type="hidden" name="device_code" value="${device_code}">
<button>Yes, sign it in</button>
</form>
<p class="soft">Not your device? Close this page. Nothing has changed.</p>`
})

export const signedIn: Page = {
  title: 'Your device is signed in',
  body: html`<p>You can close this page and continue there.</p>`
}

export const signInUnknown: Page = {
  title: 'This link is not valid',
  body: html`<p>It is incomplete, or there is a newer one. Please start again on your device.</p>`
}

export const signInExpired: Page = {
  title: 'This sign-in has expired',
  body: html`<p>Sign-ins are valid for 15 minutes. Please start again on your device.</p>`
}

export const linkUsed: Page = {
  title: 'This link was already used',
  body: html`<p>If that was you, your device is signed in, and you can close this page.</p>
<p class="soft">If it was not you, sign in and revoke any sessions and API keys you do not recognise.</p>`
}
