/** What the browser loads for the dashboard: its size, headers and paths. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { bundle, bundleFolder, isBundled, readManifest } from '../../src/dashboard/build.ts'
import { build } from '../support/setup.ts'

t.test('the first view loads at most 100 KB and 70 KB of fonts, and all pages at most 150 KB', async t => {
  const { app } = await build(t)
  const page = await app.inject('/dashboard')
  const { files, style, early, script, imports } = readManifest()!
  const first = [style, early, script, ...imports]
  const frame = page.rawPayload.length + (await app.inject('/favicon.svg')).rawPayload.length
  const bytes = { first: frame, all: frame, fonts: 0 }
  for (const file of files) {
    const answer = await app.inject(`/dashboard/assets/${file}`)
    const isFont = file.endsWith('.woff2')
    const content = isFont ? answer.rawPayload : gunzipSync(answer.rawPayload)
    t.equal(answer.statusCode, 200, file)
    t.equal(answer.headers['content-encoding'], isFont ? undefined : 'gzip')
    t.equal(answer.headers['cache-control'], 'public, max-age=31536000, immutable')
    t.ok(content.equals(readFileSync(`${bundleFolder}/${file}`)), file)
    // Browsers load latin-ext only for pages with such letters; those of the dashboard are in English.
    if (isFont) bytes.fonts += file.includes('latin-ext') ? 0 : answer.rawPayload.length
    else bytes.all += answer.rawPayload.length
    if (first.includes(file)) bytes.first += answer.rawPayload.length
  }
  t.ok(bytes.first < 100_000 && bytes.all < 150_000 && bytes.fonts > 0 && bytes.fonts < 70_000, JSON.stringify(bytes))
  t.same(
    [...page.body.matchAll(/"\/dashboard\/assets\/([^"]+)"/g)].map(([, file]) => file),
    first
  )
  t.ok(files.length > first.length, 'other pages come later')
})

t.test('every path of the dashboard is the same page, without inline scripts or styles', async t => {
  const { app } = await build(t)
  const { body, headers } = await app.inject('/dashboard')
  t.equal(
    headers['content-security-policy'],
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  )
  t.same([headers['cache-control'], headers['x-robots-tag'], headers['x-frame-options']], ['no-store', 'noindex', 'DENY'])
  t.notMatch(body, /<script(?![^>]* src=)|<style|style=| on\w+=/)
  for (const path of ['/dashboard/cues', '/dashboard/executions/x?y=z', '/dashboard/cues/a%2fb'])
    t.equal((await app.inject(path)).body, body, path)
  const unchanged = await app.inject({ url: '/dashboard', headers: { 'if-none-match': String(headers.etag) } })
  t.equal(unchanged.statusCode, 304)
  const missing = await app.inject('/dashboard/assets/app-old.js')
  t.same([missing.statusCode, missing.json().error.code], [404, 'not_found'])
  t.equal((await app.inject('/dashboard/assets/..%2fmanifest.json')).statusCode, 404)
})

t.test('files are under the path of BASE_URL', async t => {
  const { app } = await build(t, undefined, { env: { BASE_URL: 'https://example.com/cue' } })
  const { body } = await app.inject('/dashboard')
  t.match(body, /<html lang="en" data-root="\/cue"/)
  const paths = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
  t.ok(paths.length > 3)
  t.same(
    paths.filter(path => !path.startsWith('/cue/')),
    []
  )
})

t.test('the bundle is made again only when its sources have changed', async t => {
  t.ok(isBundled())
  const before = readManifest()
  await bundle()
  t.same(readManifest(), before, 'the same names from the same sources')
})
