/** Serves the dashboard: one page for all its paths, and the files it loads. What it shows, it reads from the API like any other client. */
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { credentialOf } from '../accounts/cookies.ts'
import { outboxOf } from '../directories.ts'
import { ApiError, unavailable } from '../errors.ts'
import { type Fixed, fixed, sendFixed } from '../http/fixed.ts'
import { html } from '../pages/html.ts'
import { favicon } from '../pages/logo.ts'
import { bundle, bundleFolder, isBundled, type Manifest, readManifest } from './build.ts'

type Files = { manifest: Manifest; files: Map<string, Fixed> }

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.woff2': 'font/woff2'
}
/** Compressed already. */
const isFont = (file: string) => extname(file) === '.woff2'

/** Files whose names change with their content. */
const forever = 'public, max-age=31536000, immutable'

export default async (app: FastifyInstance): Promise<void> => {
  const root = new URL(app.config.baseUrl).pathname.replace(/\/$/, '')
  let loading: Promise<Files> | undefined
  /** Read on first use; a failure is not kept. */
  const load = () => {
    loading ??= loadFiles().catch(error => {
      loading = undefined
      throw unavailable(error)
    })
    return loading
  }

  const open = { config: { exempt: true }, schema: { hide: true } }
  const sendShell = async (request: FastifyRequest, reply: FastifyReply) => {
    const { manifest } = await load()
    reply.type('text/html; charset=utf-8').headers(shellHeaders)
    return sendFixed(
      request,
      reply,
      fixed(
        shell(root, manifest, {
          isLocal: app.config.embedded,
          isSold: Boolean(app.config.stripeSecretKey),
          outbox: outboxOf(app.config),
          mayBeSignedIn: credentialOf(request.headers, app.config).isCookie
        }).text
      )
    )
  }
  app.get('/dashboard', open, sendShell)
  app.get('/dashboard/*', open, sendShell)

  app.get<{ Params: { file: string } }>('/dashboard/assets/:file', open, async (request, reply) => {
    const { file } = request.params
    const content = (await load()).files.get(file)
    if (!content) throw new ApiError('not_found', 'File not found. Reload the page: there is a newer release.')
    reply.type(types[extname(file)]!).header('cache-control', forever)
    if (!isFont(file)) reply.header('content-encoding', 'gzip')
    return sendFixed(request, reply, content)
  })

  app.get('/favicon.svg', open, async (request, reply) =>
    sendFixed(request, reply.type('image/svg+xml').header('cache-control', 'public, max-age=86400'), favicon)
  )
  app.get('/favicon.ico', open, async (_, reply) => reply.redirect(`${root}/favicon.svg`))
}

// The page loads nothing from elsewhere and has no inline scripts or styles, so hostile text that got into it could do nothing.
const shellHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'"
  ].join('; '),
  'x-robots-tag': 'noindex'
}

const shell = (
  root: string,
  { style, early, script, imports }: Manifest,
  { isLocal, isSold, outbox, mayBeSignedIn }: { isLocal: boolean; isSold: boolean; outbox: string | null; mayBeSignedIn: boolean }
) => html`<!doctype html>
<html lang="en" data-root="${root}"${isLocal && html` data-local`}${isSold && html` data-sold`}${outbox && html` data-outbox="${outbox}"`}${mayBeSignedIn && html` data-session`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>pgcue</title>
<link rel="icon" href="${root}/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}/dashboard/assets/${style}">
<script type="module" src="${root}/dashboard/assets/${early}"></script>
<script type="module" src="${root}/dashboard/assets/${script}"></script>
${imports.map(file => html`<link rel="modulepreload" href="${root}/dashboard/assets/${file}">\n`)}</head>
<body>
<div id="app"></div>
<noscript><p>The dashboard needs JavaScript. Without it, use the <a href="${root}/docs">API</a> or the command <code>pgcue</code>.</p></noscript>
</body>
</html>
`

/** Reads the bundle, which is made first if its sources have changed; in the image, they cannot. */
const loadFiles = async (): Promise<Files> => {
  if (!isBundled()) {
    await bundle().catch(error => {
      if (!readManifest()) throw error
    })
  }
  const manifest = readManifest()!
  const compress = promisify(gzip)
  const entries = manifest.files.map(async name => {
    const content = readFileSync(join(bundleFolder, name))
    return [name, fixed(isFont(name) ? content : await compress(content, { level: 9 }))] as const
  })
  return { manifest, files: new Map(await Promise.all(entries)) }
}
