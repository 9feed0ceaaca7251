/** The common frame, style and security policy of all pages. */
import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { Html, html } from './html.ts'
import { logo } from './logo.ts'

export type Page = {
  title: string
  body: Html
  /** A text to read, with lines of limited length; other pages have a few words and a button. */
  isText?: boolean
}

/**
 * Sends a page that runs no scripts, loads nothing and cannot be framed. Its URL may contain a token; security-headers.ts keeps that from
 * other sites.
 */
export const sendPage = (reply: FastifyReply, status: number, page: Page): FastifyReply =>
  reply.code(status).type('text/html; charset=utf-8').headers(headers).send(frame(page).text)

// System fonts and colours; contrast is at least 7:1 in both colour schemes, and fields and buttons are 44 px high.
const style = `
:root { color-scheme: light dark; --ink: #17171f; --soft: #484854; --paper: #fff; --ground: #f5f5f9; --line: #8b8b9c; --edge: #e3e3ec; --accent: #3434b5; --on-accent: #fff; --alarm: #8f1528 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #f0f0f6; --soft: #b3b3c1; --paper: #17171e; --ground: #0e0e13; --line: #7d7d90; --edge: #2b2b37; --accent: #b3b5ff; --on-accent: #17173d; --alarm: #ffb8be }
}
* { box-sizing: border-box }
html { font: 1.0625rem/1.55 system-ui, sans-serif; background: var(--ground); color: var(--ink) }
body { margin: 0; min-height: 100vh; display: flex; flex-direction: column; align-items: center; padding: 1rem }
.name { margin: 6vh 0 1.25rem; display: flex; align-items: center; gap: .6rem; font-size: 1.25rem; font-weight: 700; letter-spacing: -.02em }
.name svg { width: 1.9rem; height: 1.9rem }
main { width: 100%; max-width: 30rem; background: var(--paper); border: 1px solid var(--edge); border-radius: 1rem; padding: 1.75rem; overflow-wrap: anywhere }
main.text { max-width: 44rem }
h1 { font-size: 1.45rem; line-height: 1.25; letter-spacing: -.02em; margin: 0 0 1rem }
p { margin: 0 0 1rem }
form { margin: 0 0 1rem }
main > :last-child, form > :last-child { margin-bottom: 0 }
.soft { color: var(--soft); font-size: .9375rem }
.alarm { margin-top: .35rem; color: var(--alarm); font-weight: 600 }
.code { display: block; margin: 0 0 1.25rem; padding: .75rem; border: 1px solid var(--line); border-radius: .5rem; font: 600 1.25rem/1.4 ui-monospace, monospace; letter-spacing: .06em; text-align: center }
dl { margin: 0 0 1.25rem; display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem }
dt { color: var(--soft) }
dd { margin: 0 }
label { display: block; font-weight: 600; margin-bottom: .35rem }
input { width: 100%; min-height: 2.75rem; padding: .4rem .75rem; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: .5rem }
input[aria-invalid] { border: 2px solid var(--alarm) }
button { display: block; width: 100%; min-height: 3rem; margin: 1rem 0; padding: .5rem 1rem; font: 600 1.0625rem/1.3 system-ui, sans-serif; color: var(--on-accent); background: var(--accent); border: 0; border-radius: .5rem; cursor: pointer }
button.alarming { background: var(--alarm); color: var(--paper) }
a { color: var(--accent) }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 1.75rem 0 .75rem }
ul, ol { margin: 0 0 1rem; padding-left: 1.5rem }
code { font: .9375em/1.5 ui-monospace, monospace }
pre { margin: 0 0 1rem; padding: .75rem 1rem; overflow-x: auto; overflow-wrap: normal; border: 1px solid var(--line); border-radius: .5rem }
table { width: 100%; margin: 0 0 1rem; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .4rem .6rem .4rem 0; text-align: left; vertical-align: bottom; overflow-wrap: normal; border-bottom: 1px solid var(--line) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
@media (max-width: 32rem) { table { font-size: .8125rem } }
@media (max-width: 24rem) { main { padding: 1.25rem } dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .5rem } table { font-size: .75rem } th, td { padding-right: .25rem } }
`

const headers = {
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'"
  ].join('; '),
  'x-robots-tag': 'noindex'
}

const frame = ({ title, body, isText }: Page): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – pgcue</title>
<style>${new Html(style)}</style>
</head>
<body>
<header class="name">${new Html(logo)}pgcue</header>
<main${isText && html` class="text"`}>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`

/** Formats date and time for people, to the minute: 15 January 2030, 12:00 UTC. */
export const spoken = (date: Date): string =>
  `${date.toLocaleString('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'long', year: 'numeric', hour: '2-digit', minute: '2-digit' }).replace(' at ', ', ')} UTC`

/** Formats a count with its noun: one key, 2 keys. */
export const counted = (count: number, noun: string): string => (count === 1 ? `one ${noun}` : `${count} ${noun}s`)
