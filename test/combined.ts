/**
 * Runs short test files in a few processes, one for each test/combined/*.test.ts: loading the service and starting it for the first time takes
 * longer than most of them. Files that .taprc includes by name run alone; the seed of random ones, for example, must not depend on others.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'

const root = new URL('..', import.meta.url)
const { include }: { include: string[] } = parse(readFileSync(new URL('.taprc', root), 'utf8'))
const timeoutMs = 600_000
const processes = readdirSync(new URL('test/combined', root)).length

/** Runs the n-th part of the files, from 1. */
export const runCombined = (n: number): void => {
  const short = readdirSync(import.meta.dirname).filter(
    name => name.endsWith('.test.ts') && !include.some(glob => matchesGlob(`test/${name}`, glob))
  )
  const files = short.filter((_, i) => i % processes === n - 1)
  t.comment(files.join(' '))
  // Their tests run afterwards, and not before all are known: an idle tap ends.
  t.test('loads its files', async () => {
    for (const name of files) await import(new URL(name, import.meta.url).href)
    t.setTimeout(timeoutMs) // some set one for themselves
  })
}
