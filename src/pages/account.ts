/** Pages for links in mails about registration and deletion. */
import { html } from './html.ts'
import { type Page, spoken } from './page.ts'

export const confirmCancel = ({ action, token, due_at }: { action: string; token: string; due_at: Date }): Page => ({
  title: 'Keep your account?',
  body: html`<p>It will be deleted on ${spoken(due_at)}, with all its cues and their history.</p>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button>Keep my account</button>
</form>
<p class="soft">To let it be deleted, close this page.</p>`
})

export const deletionCancelled: Page = {
  title: 'Your account is kept',
  body: html`<p>The deletion is cancelled.</p>`
}

export const alreadyCancelled: Page = {
  title: 'Your account is kept',
  body: html`<p>This deletion is already cancelled.</p>`
}

export const deletionCompleted: Page = {
  title: 'The account has been deleted',
  body: html`<p>It was deleted at the end of the 24-hour grace period. You can register again with the same address.</p>`
}

export const confirmEmail = ({ action, token }: { action: string; token: string }): Page => ({
  title: 'Confirm your address?',
  body: html`<p>An account was created with your email address. Confirm the address to receive all mails about failures.</p>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button>Confirm my address</button>
</form>
<p class="soft">Not you? Close this page. The mail about the account has a link that deletes it.</p>`
})

export const confirmAddress = ({ action, token }: { action: string; token: string }): Page => ({
  title: 'Receive alerts at this address?',
  body: html`<p>An account wants to send alerts to your email address. Confirm it only if you expect them.</p>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button>Confirm this address</button>
</form>
<p class="soft">To receive none, close this page.</p>`
})

export const emailConfirmed: Page = {
  title: 'Your address is confirmed',
  body: html`<p>You can close this page.</p>`
}

/** @param untouched the account has never been used, so it is deleted immediately */
export const confirmDisown = ({
  action,
  token,
  account
}: {
  action: string
  token: string
  account: { email: string; created_at: Date; untouched: boolean }
}): Page => ({
  title: 'Did someone else create this account?',
  body: html`<dl>
<dt>Account</dt><dd>${account.email}</dd>
<dt>Created</dt><dd>${spoken(account.created_at)}</dd>
</dl>
${
  account.untouched
    ? html`<p>It has never been used. If you did not create it, delete it: it is removed immediately, with its API keys.</p>`
    : html`<p>If you did not create it, delete it: its API keys and sessions are revoked, its cues paused and its waiting executions cancelled immediately. The account is deleted after 24 hours; a link in a mail lets you cancel that.</p>`
}
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button class="alarming">Delete this account</button>
</form>
<p class="soft">If it was you, close this page. Nothing has changed.</p>`
})

/** @param due_at null if the account has been deleted already */
export const disowned = (due_at: Date | null): Page =>
  due_at
    ? {
        title: 'The account is closed',
        body: html`<p>Its API keys and sessions are revoked, its cues are paused and its waiting executions are cancelled. Deliveries already under way may still be retried. The account will be deleted on ${spoken(due_at)}.</p>`
      }
    : { title: 'The account is deleted', body: html`<p>All its data has been removed.</p>` }

export const disownedBefore = (due_at: Date): Page => ({
  title: 'This link was already used',
  body: html`<p>The account is closed: its API keys and sessions are revoked, and its cues are paused. It will be deleted on ${spoken(due_at)}.</p>
<p class="soft">To cancel the deletion, open the link in the mail about it.</p>`
})

export const linkDead: Page = {
  title: 'This link is no longer valid',
  body: html`<p>The account no longer exists, or the link has expired or is incomplete.</p>
<p class="soft">The owner of the address can always sign in by email, revoke API keys and delete the account.</p>`
}
