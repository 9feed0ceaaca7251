/** The guide at `/docs/guide`: as pages, as Markdown, and for agents in `/llms.txt` and `/llms-full.txt`. */
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Fixed, fixed, sendFixed } from '../http/fixed.ts'
import { html } from '../pages/html.ts'
import { sendPage } from '../pages/page.ts'
import { frame, headers } from './frame.ts'
import { type GuidePage, readPages } from './pages.ts'

export default async (app: FastifyInstance): Promise<void> => {
  let files: Map<string, File> | undefined
  const send = (name: string, request: FastifyRequest, reply: FastifyReply) => {
    files ??= makeFiles(app.config.baseUrl)
    const file = files.get(name)
    if (!file)
      return sendPage(reply, 404, { title: 'Page not found', body: html`<p><a href="${app.config.baseUrl}/docs/guide">The guide</a></p>` })
    return sendFixed(request, reply.type(file.type).headers({ 'cache-control': 'public, max-age=60', ...file.headers }), file)
  }

  const open = { config: { exempt: true }, schema: { hide: true } }
  app.get('/docs/guide', open, async (_, reply) => reply.redirect(`${app.config.baseUrl}/docs/guide/quickstart`))
  app.get<{ Params: { file: string } }>('/docs/guide/:file', open, async (request, reply) => send(request.params.file, request, reply))
  for (const name of ['llms.txt', 'llms-full.txt']) app.get(`/${name}`, open, async (request, reply) => send(name, request, reply))
}

type File = Fixed & { type: string; headers?: Record<string, string> }

const makeFiles = (baseUrl: string): Map<string, File> => {
  const root = new URL(baseUrl).pathname.replace(/\/$/, '')
  const pages = readPages()
  const text = (content: string, type: string, more?: File['headers']): File => ({
    ...fixed(content),
    type: `${type}; charset=utf-8`,
    ...(more && { headers: more })
  })
  const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
  const index = pages.flatMap(({ slug, title, sections }) => sections.map(section => ({ slug, title, ...section })))
  return new Map([
    ...pages.map(page => [page.slug, text(frame(page, pages, root), 'text/html', headers)] as const),
    ...pages.map(({ slug, markdown }) => [`${slug}.md`, text(markdown, 'text/markdown')] as const),
    ['style.css', text(read('../dashboard/app/style/tokens.css') + read('guide.css'), 'text/css')],
    ['guide.js', text(read('guide.js'), 'text/javascript')],
    [
      'search.json',
      { ...fixed(gzipSync(JSON.stringify(index))), type: 'application/json; charset=utf-8', headers: { 'content-encoding': 'gzip' } }
    ],
    ['llms.txt', text(overview(pages, baseUrl), 'text/plain')],
    ['llms-full.txt', text(pages.map(page => absolute(page, baseUrl)).join('\n'), 'text/plain')]
  ])
}

const overview = (pages: readonly GuidePage[], baseUrl: string) => `# pgcue

> A scheduling service for automated agents in which Postgres is the scheduler: register a cue (cron or one time); when it is due, pgcue sends a
> signed webhook, or a worker claims it.

Agents connect to ${baseUrl}/mcp (Model Context Protocol, Streamable HTTP) with an API key as the bearer token.

## Guide

${pages.map(({ slug, title, summary }) => `- [${title}](${baseUrl}/docs/guide/${slug}.md): ${summary}`).join('\n')}

## API

- [OpenAPI 3.1](${baseUrl}/openapi.json): every operation with its schemas

## Optional

- [The whole guide in one file](${baseUrl}/llms-full.txt)
`

/** A page's Markdown with links that work from anywhere. */
const absolute = ({ slug, markdown }: GuidePage, baseUrl: string): string =>
  markdown.replace(/\]\(([^)]+)\)/g, (_, href) => `](${new URL(href, `${baseUrl}/docs/guide/${slug}.md`)})`)
