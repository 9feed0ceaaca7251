/** A ticket as an issue in the tracker, which may be visible to more people than the author expects. */
import type { BeginIssueRow } from '../database/functions.ts'

/** The end of the issue's body, by which it is found again. A user cannot write it, because their text ends with its fence. */
export const marker = (ticket_id: number): string => `<!-- pgcue-ticket-${ticket_id} -->`

/** Returns title, body and labels. The user's text creates no markup, mentions nobody and closes no issues. */
export const issueOf = (ticket: BeginIssueRow) => ({
  title: `[${ticket.severity}] ${titled(withoutSecrets(ticket.subject))}`,
  body: [
    `Ticket ${ticket.ticket_id} of account \`${ticket.account_id}\` (${ticket.plan}), ${ticket.created_at.toISOString()}`,
    quoted(withoutSecrets(ticket.message)),
    marker(ticket.ticket_id)
  ].join('\n\n'),
  labels: ['support', ticket.type]
})

/** Returns a code block whose fence is longer than any run of backticks in the text. */
const quoted = (text: string): string => {
  const fence = '`'.repeat(Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length)) + 1)
  return `${fence}text\n${text.replace(/\r\n?/g, '\n').replace(controls, '')}\n${fence}`
}

/** Makes the text a single line. A zero-width space keeps @name from mentioning someone and #1 from linking an issue. */
const titled = (text: string): string =>
  text
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .replace(/[@#](?=\w)/g, '$&\u200b')

// Includes bidirectional marks, which could change the visible order of the text.
const controls = /[\0-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Removes pasted keys, secrets and tokens of ours, and any bearer token, even directly after other characters, as in `%20svc_sk_…`. */
export const withoutSecrets = (text: string): string =>
  text
    .replace(/(svc_sk_|whsec_)[\w-]+/g, '$1***')
    .replace(/eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, '***')
    .replace(/(bearer|basic)(?:\s|\+|%(?:25)*(?:20|09)|\\[nrt])+[\w.~+/%-]{8,}=*/gi, '$1 ***')
