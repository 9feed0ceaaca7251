/** The pages behind the links that tell of an account's beginning and end. */
import { html } from './html.ts'
import { type Page, spoken } from './page.ts'

export const confirmCancel = ({ action, token, due_at }: { action: string; token: string; due_at: Date }): Page => ({
  title: 'Keep your account?',
  body: html`<p>It is to be deleted on ${spoken(due_at)}, with all its cues and their history.</p>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button>Keep my account</button>
</form>
<p class="soft">To let it be deleted, close this page.</p>`
})

export const deletionCancelled: Page = {
  title: 'Your account stays',
  body: html`<p>The deletion is cancelled.</p>`
}

export const alreadyCancelled: Page = {
  title: 'Your account stays',
  body: html`<p>This deletion was cancelled before.</p>`
}

export const deletionCompleted: Page = {
  title: 'The account is gone',
  body: html`<p>It was deleted when the day of grace was over. You can register again with the same address.</p>`
}

export const confirmEmail = ({ action, token }: { action: string; token: string }): Page => ({
  title: 'Confirm your address?',
  body: html`<p>An account was made with your e-mail address. Confirm that it is yours, and it gets all mails about failures.</p>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button>Confirm my address</button>
</form>
<p class="soft">You made no account? Close this page; the mail about the account has a link that deletes it.</p>`
})

export const emailConfirmed: Page = {
  title: 'Your address is confirmed',
  body: html`<p>You can close this page.</p>`
}

/** `untouched`: it never did anything, and can go at once. */
export const confirmDisown = ({
  action,
  token,
  account
}: {
  action: string
  token: string
  account: { email: string; created_at: Date; untouched: boolean }
}): Page => ({
  title: 'Did somebody else make this account?',
  body: html`<dl>
<dt>Account</dt><dd>${account.email}</dd>
<dt>Made</dt><dd>${spoken(account.created_at)}</dd>
</dl>
${
  account.untouched
    ? html`<p>It has never been used. If it was not you who made it, have it deleted: it goes at once, with its API keys.</p>`
    : html`<p>If it was not you who made it, have it deleted: its API keys and sessions end, its cues are paused and what waits is cancelled at once, and in 24 hours all of it is gone. You get a mail with a link that cancels this.</p>`
}
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<button class="alarming">Delete this account</button>
</form>
<p class="soft">It was you? Close this page, and nothing happens.</p>`
})

/** `due_at` is null where the account is gone already. */
export const disowned = (due_at: Date | null): Page =>
  due_at
    ? {
        title: 'The account is closed',
        body: html`<p>Its API keys and sessions are revoked, its cues are paused, and what waited is cancelled; only what was being sent may still be tried again. On ${spoken(due_at)} it is deleted.</p>`
      }
    : { title: 'The account is deleted', body: html`<p>Nothing of it is left.</p>` }

export const disownedBefore = (due_at: Date): Page => ({
  title: 'This link was used already',
  body: html`<p>The account is closed: its API keys and sessions are revoked, and its cues are paused. On ${spoken(due_at)} it is deleted.</p>
<p class="soft">The mail about its deletion has a link that cancels that.</p>`
})

export const linkDead: Page = {
  title: 'This link is not good any more',
  body: html`<p>The account is gone, or the link is too old or not complete.</p>
<p class="soft">Whoever owns the address can always sign in by mail, revoke API keys and delete the account.</p>`
}
