/** A ticket as an issue in the tracker, which more people may read than the account's owner thinks of. Pure. */
import type { BeginIssueRow } from '../database/functions.ts'

/** What the body of a ticket's issue ends with, and nothing that a user writes can: their text ends with the fence around it. */
export const marker = (ticket_id: number): string => `<!-- pgcue-ticket-${ticket_id} -->`

/** Title, body and labels. What the user wrote stays text: it makes no markup, mentions nobody and closes nothing. */
export const issueOf = (ticket: BeginIssueRow) => ({
  title: `[${ticket.severity}] ${titled(withoutSecrets(ticket.subject))}`,
  body: [
    `Ticket ${ticket.ticket_id} of account \`${ticket.account_id}\` (${ticket.plan}), ${ticket.created_at.toISOString()}`,
    quoted(withoutSecrets(ticket.message)),
    marker(ticket.ticket_id)
  ].join('\n\n'),
  labels: ['support', ticket.type]
})

/** A code block whose fence is longer than any run of backticks in the text, so that the text cannot end it. */
const quoted = (text: string): string => {
  const fence = '`'.repeat(Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length)) + 1)
  return `${fence}text\n${text.replace(/\r\n?/g, '\n').replace(controls, '')}\n${fence}`
}

/** One line. A zero-width space keeps an @name from being one, and #1 from being an issue. */
const titled = (text: string): string =>
  text
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .replace(/[@#](?=\w)/g, '$&\u200b')

// Bidirectional marks could show a reader another order than the one that is there.
const controls = /[\0-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Keys, secrets and tokens of ours that people paste, and any bearer. A word may touch them in front, as in `%20svc_sk_…` or an escaped line end. */
export const withoutSecrets = (text: string): string =>
  text
    .replace(/(svc_sk_|whsec_)[\w-]+/g, '$1***')
    .replace(/eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, '***')
    .replace(/(bearer|basic)(?:\s|\+|%(?:25)*(?:20|09)|\\[nrt])+[\w.~+/%-]{8,}=*/gi, '$1 ***')
