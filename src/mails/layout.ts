// Lays out a mail as text and HTML from one description. Values are escaped and stay on their line. Text from users is quoted in a form
// that mail clients don't turn into links.
import { type Html, html } from '../pages/html.ts'

/** Text from a user. */
export type Quote = { quote: string }
export const quote = (text: string): Quote => ({ quote: text })

/** A paragraph, named facts, a link, a code to compare, or a list. */
export type Block =
  | string
  | { facts: [name: string, value: string | number | Quote | null][] }
  | { link: string; label: string }
  | { code: string }
  | { quotes: string[] }

export type Mail = {
  to: string
  /** Contains no text from users, because it is read first and used by filters. */
  subject: string
  blocks: Block[]
  /** Why the mail was sent, and how to stop such mails. */
  why: string
}

/** A mail about a row to the address in it; undefined without a row. */
export const mailOf = <R extends { email: string }>(row: R | undefined, compose: (row: R) => Omit<Mail, 'to'>): Mail | undefined =>
  row && { to: row.email, ...compose(row) }

/** Returns the parts of a message. Null or empty facts are omitted. */
export const layOut = ({ subject, blocks, why }: Mail): { subject: string; text: string; html: string } => ({
  subject: oneLine(subject),
  text: `${blocks.map(asText).join('\n\n')}\n\n-- \n${why}\n`,
  html: frame(oneLine(subject), blocks.map(asHtml), why).text
})

/** Returns all links of a mail. */
export const linksOf = ({ blocks }: Mail): string[] =>
  blocks.flatMap(block => (typeof block === 'object' && 'link' in block ? [block.link] : []))

/** Replaces line breaks and bidirectional control characters by blanks, so that text cannot end a header or reverse its order. */
const oneLine = (text: string, length = 120): string => {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu, ' ').trim()
  return line.length > length ? `${line.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : line
}

const asText = (block: Block): string => {
  if (typeof block === 'string') return block
  if ('facts' in block)
    return told(block.facts)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n')
  if ('link' in block) return `${block.label}:\n${block.link}`
  if ('code' in block) return `    ${block.code}`
  return block.quotes.map(item => `- ${quoted(item, 300)}`).join('\n')
}

const asHtml = (block: Block): Html => {
  if (typeof block === 'string') return html`<p style="margin:0 0 16px">${block}</p>`
  if ('facts' in block) {
    const rows = told(block.facts).map(
      ([name, value]) =>
        html`<tr><th scope="row" style="${cell};color:#4a525c;font-weight:normal;white-space:nowrap">${name}</th><td style="${cell}">${value}</td></tr>`
    )
    return html`<table role="presentation" style="margin:0 0 16px;border-collapse:collapse">${rows}</table>`
  }
  if ('link' in block) {
    return html`<p style="margin:0 0 16px"><a href="${block.link}" style="${button}">${block.label}</a></p>
<p style="margin:0 0 16px;font-size:13px;color:#4a525c">Or copy this link: <span style="word-break:break-all">${block.link}</span></p>`
  }
  if ('code' in block) return html`<p style="${code}">${block.code}</p>`
  return html`<ul style="margin:0 0 16px;padding-left:20px">${block.quotes.map(item => html`<li>${quoted(item, 300)}</li>`)}</ul>`
}

const told = (facts: [string, string | number | Quote | null][]) =>
  facts
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => [name, typeof value === 'object' ? quoted(value!.quote, 500) : oneLine(String(value), 500)] as const)

/** Characters by which addresses are recognised, unless followed by a blank: `https://evil.example` becomes `https[://]evil[.]example`. */
const linking = /(?::\/\/|[.:@\u3002\uFF0E\uFF61\uFF20\uFF1A])(?=\S)/gu

const quoted = (text: string, length: number): string => `“${oneLine(text, length).replace(linking, '[$&]')}”`

const cell = 'padding:2px 16px 2px 0;text-align:left;vertical-align:top'
const button =
  'display:inline-block;padding:12px 20px;border-radius:8px;background:#0b4a8f;color:#ffffff;font-weight:600;text-decoration:none'
const code =
  'margin:0 0 16px;padding:12px;border:1px solid #767e89;border-radius:8px;font:600 20px/1.4 ui-monospace,monospace;text-align:center;word-break:break-all'

const frame = (subject: string, body: Html[], why: string): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<title>${subject}</title>
</head>
<body style="margin:0;padding:24px 16px;background:#f3f4f6">
<div style="max-width:520px;margin:0 auto;padding:28px;background:#ffffff;border-radius:12px;font:16px/1.5 system-ui,sans-serif;color:#1b1f24;overflow-wrap:anywhere">
<h1 style="margin:0 0 16px;font-size:20px;line-height:1.3">${subject}</h1>
${body}
<p style="margin:24px 0 0;padding-top:16px;border-top:1px solid #d5d9de;font-size:13px;color:#4a525c">${why}</p>
</div>
</body>
</html>
`
