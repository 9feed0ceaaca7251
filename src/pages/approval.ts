/** Pages for the link in a request for approval. */
import { html } from './html.ts'
import { type Page, spoken } from './page.ts'

export type Waiting = {
  cue_name: string
  scheduled_for: Date
  message: string | null
  payload: string
  expires_at: Date | null
}

const MOST_SHOWN = 4000

/** Rejecting needs a reason, which the browser asks for; without scripts. */
export const decide = ({ action, token, waiting }: { action: string; token: string; waiting: Waiting }): Page => {
  const { cue_name, scheduled_for, message, payload, expires_at } = waiting
  const isLong = payload.length > MOST_SHOWN
  return {
    title: 'Approve this run?',
    isText: true,
    body: html`${message && html`<p>${message}</p>`}
<dl>
<dt>Cue</dt><dd>${cue_name}</dd>
<dt>Scheduled for</dt><dd>${spoken(scheduled_for)}</dd>
${expires_at && html`<dt>Decide before</dt><dd>${spoken(expires_at)}</dd>`}
</dl>
<pre>${isLong ? payload.slice(0, MOST_SHOWN) : payload}</pre>
${isLong && html`<p class="soft">These are the first ${MOST_SHOWN} characters of the payload.</p>`}
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<label for="reason">Reason, required to reject</label>
<input id="reason" name="reason" maxlength="500" required autocomplete="off">
<button name="decision" value="approved" formnovalidate>Approve</button>
<button name="decision" value="rejected" class="alarming">Reject</button>
</form>
<p class="soft">Nothing happens until you press a button. The link works for this run only.</p>`
  }
}

const titles = { approved: 'Approved', rejected: 'Rejected', expired: 'It has expired' }

export const decided = (decision: keyof typeof titles, isNew: boolean): Page => ({
  title: titles[decision],
  body: isNew
    ? html`<p>${decision === 'approved' ? 'The run goes on.' : 'The run has ended.'} You can close this page.</p>`
    : html`<p>${decision === 'expired' ? 'Nobody decided in time.' : 'Somebody decided before.'} Your link has changed nothing.</p>`
})

export const signInToDecide = (url: string): Page => ({
  title: 'Sign in to decide',
  body: html`<p>Links cannot decide for this account.</p>
<p><a href="${url}">Open the run in the dashboard</a></p>`
})

export const nothingWaits: Page = {
  title: 'This link is no longer valid',
  body: html`<p>The run has been cancelled or removed, or the link is incomplete.</p>`
}

export const reasonMissing: Page = {
  title: 'A reason is missing',
  body: html`<p>To reject the run, go back and give a reason of at most 500 characters.</p>`
}
