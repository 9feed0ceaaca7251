/** The API reference, `/docs`. It loads nothing from other servers. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runInNewContext } from 'node:vm'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { version } from '../config.ts'
import { type Fixed, fixed, sendFixed } from '../http/fixed.ts'
import { logo } from '../pages/logo.ts'

export default fp(
  async (app: FastifyInstance) => {
    const open = { config: { exempt: true }, schema: { hide: true } }
    const root = new URL(app.config.baseUrl).pathname.replace(/\/$/, '')
    const page = fixed(pageOf(root))
    const start = fixed(startOf(root))
    app.get('/docs', open, async (request, reply) => {
      reply.type('text/html; charset=utf-8').headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer' })
      return sendFixed(request, reply, page)
    })
    app.get('/docs/start.js', open, async (request, reply) => sendFixed(request, reply.type('text/javascript; charset=utf-8'), start))
    app.get('/docs/scalar.js', open, async (request, reply) => {
      reply.type('text/javascript; charset=utf-8').headers({ 'content-encoding': 'gzip', 'cache-control': 'public, max-age=86400' })
      return sendFixed(request, reply, await loadBundle())
    })
  },
  { name: 'docs' }
)

// Forbids loading anything from elsewhere; the bundle creates its styles itself.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join('; ')

const pageOf = (root: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>pgcue ${version}: API reference</title>
<link rel="icon" href="${root}/favicon.svg" type="image/svg+xml">
<style>${frameStyle}</style>
</head>
<body>
<header class="site"><a href="${root}/dashboard">${logo}<span>pgcue</span></a><nav><a href="${root}/dashboard">Dashboard</a><a href="${root}/docs/guide">Guide</a><a href="${root}/docs" aria-current="page">API reference</a><a href="${root}/plans">Plans</a><button id="key" type="button">Use my key</button></nav></header>
<div id="app"></div>
<noscript>This page needs JavaScript. The same description as JSON: <a href="${root}/openapi.json">/openapi.json</a></noscript>
<script src="${root}/docs/scalar.js"></script>
<script type="module" src="${root}/docs/start.js"></script>
</body>
</html>
`

const startOf = (root: string) => `const settings = ${JSON.stringify({
  url: `${root}/openapi.json`,
  theme: 'none',
  customCss: style,
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  orderSchemaPropertiesBy: 'preserve',
  agent: { disabled: true },
  mcp: { disabled: true }
})}
const show = token =>
  Scalar.createApiReference('#app', { ...settings, authentication: { preferredSecurityScheme: 'bearer', securitySchemes: { bearer: { token } } } })
const reference = show('')
// Puts the key of who is signed in into the examples. It is not stored. Not before a click: each look at a key is an event of the audit log.
const button = document.querySelector('#key')
button.addEventListener('click', async () => {
  const response = await fetch('${root}/v1/auth/key').catch(() => undefined)
  button.disabled = true
  button.textContent = response?.ok ? 'Your key is in the examples' : response?.status === 401 ? 'You are not signed in' : 'No key to show'
  if (!response?.ok) return
  reference.destroy()
  show((await response.json()).api_key)
})
`

/** The bar above, as in the dashboard. */
const frameStyle = `
body { margin: 0 }
.site { position: sticky; top: 0; z-index: 100; display: flex; align-items: center; justify-content: space-between; gap: 16px; height: 52px; padding: 0 20px; font: 550 14.5px/1.4 Inter, ui-sans-serif, system-ui, sans-serif; color: #17171f; background: #fff; border-bottom: 1px solid #e3e3ec }
.site a { display: inline-flex; align-items: center; gap: 9px; color: inherit; text-decoration: none }
.site > a { font-size: 17px; font-weight: 700; letter-spacing: -.02em }
.site svg { width: 26px; height: 26px }
.site nav { display: flex; gap: 20px }
.site nav a:hover, .site [aria-current], .site button { color: #3434b5 }
.site button { padding: 0; font: inherit; background: none; border: 0; cursor: pointer }
.site button:disabled { color: inherit; cursor: default }
@media (prefers-color-scheme: dark) {
  .site { color: #f0f0f6; background: #17171e; border-color: #2b2b37 }
  .site nav a:hover, .site [aria-current], .site button { color: #b3b5ff }
}
@media (max-width: 600px) { .site { padding: 0 12px } .site button { display: none } .site nav { gap: 10px; font-size: 12px; white-space: nowrap } }
@media (max-width: 400px) { .site, .site nav { gap: 8px } .site > a span { display: none } }
`

/** The dashboard's colours and type. */
const style = `
section:focus-visible { outline: none }
:root { --scalar-font: Inter, ui-sans-serif, system-ui, sans-serif; --scalar-font-code: ui-monospace, Menlo, Consolas, monospace; --scalar-custom-header-height: 52px; --scalar-radius: 8px; --scalar-radius-lg: 12px }
.light-mode { --scalar-background-1: #fff; --scalar-background-2: #f5f5f9; --scalar-background-3: #ececf2; --scalar-background-accent: #ececfc; --scalar-color-1: #17171f; --scalar-color-2: #44444f; --scalar-color-3: #484854; --scalar-color-accent: #3434b5; --scalar-border-color: #e3e3ec; --scalar-button-1: #3f3fd1; --scalar-button-1-color: #fff; --scalar-color-green: #0b5132; --scalar-color-red: #8f1528; --scalar-color-orange: #6b3a00; --scalar-color-blue: #2b2f9e; --scalar-color-purple: #5b2a86; --scalar-color-yellow: #6b3a00 }
.dark-mode { --scalar-background-1: #0e0e13; --scalar-background-2: #17171e; --scalar-background-3: #1e1e27; --scalar-background-accent: #25254a; --scalar-color-1: #f0f0f6; --scalar-color-2: #c3c3cf; --scalar-color-3: #b3b3c1; --scalar-color-accent: #b3b5ff; --scalar-border-color: #2b2b37; --scalar-button-1: #b3b5ff; --scalar-button-1-color: #17173d; --scalar-color-green: #8be8b5; --scalar-color-red: #ffb8be; --scalar-color-orange: #f8cf85; --scalar-color-blue: #c3c5ff; --scalar-color-purple: #d9b8ff; --scalar-color-yellow: #f8cf85 }
`

const once = <T>(make: () => Promise<T>) => {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

/**
 * The page's script, compressed on first use. Its package has it only as a string in a module that takes 25 MB of memory and a fifth of a second
 * to load, so the string is read from the file.
 */
const loadBundle = once(async (): Promise<Fixed> => {
  const module = await readFile(fileURLToPath(import.meta.resolve('@scalar/fastify-api-reference')), 'utf8')
  const [, literal] = /^var standalone_default = (".*");$/m.exec(module)!
  return fixed(await promisify(gzip)(runInNewContext(literal!) as string))
})
