/** What the browser loads for the dashboard: its size, headers and paths. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { bundle, bundleFolder, isBundled, readManifest } from '../../src/dashboard/build.ts'
import { build } from '../support/setup.ts'

t.test('everything that the dashboard loads takes at most 120 KB', async t => {
  const { app } = await build(t)
  const page = await app.inject('/dashboard')
  const { files, style, early, script, imports } = readManifest()!
  let bytes = page.rawPayload.length + (await app.inject('/favicon.svg')).rawPayload.length
  for (const file of files) {
    const answer = await app.inject(`/dashboard/assets/${file}`)
    t.equal(answer.statusCode, 200, file)
    t.equal(answer.headers['content-encoding'], 'gzip')
    t.equal(answer.headers['cache-control'], 'public, max-age=31536000, immutable')
    t.equal(gunzipSync(answer.rawPayload).toString(), readFileSync(`${bundleFolder}/${file}`, 'utf8'))
    bytes += answer.rawPayload.length
  }
  t.ok(bytes < 120_000, `${bytes} bytes`)
  const first = [style, early, script, ...imports]
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
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  )
  t.same([headers['cache-control'], headers['x-robots-tag'], headers['x-frame-options']], ['no-store', 'noindex', 'DENY'])
  t.notMatch(body, /<script(?![^>]* src=)|<style|style=| on\w+=/)
  for (const path of ['/dashboard/cues', '/dashboard/executions/x?y=z', '/dashboard/cues/a%2fb'])
    t.equal((await app.inject(path)).body, body, path)
  const known = await app.inject({ url: '/dashboard', headers: { 'if-none-match': String(headers.etag) } })
  t.equal(known.statusCode, 304)
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
