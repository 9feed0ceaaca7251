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

export default fp(
  async (app: FastifyInstance) => {
    const open = { config: { exempt: true }, schema: { hide: true } }
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

const page = fixed(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>pgcue ${version}: API reference</title>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The same description as JSON: <a href="/openapi.json">/openapi.json</a></noscript>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`)

const start = fixed(`Scalar.createApiReference('#app', ${JSON.stringify({
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  authentication: { preferredSecurityScheme: 'bearer' },
  agent: { disabled: true },
  mcp: { disabled: true }
})})
`)

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
