/**
 * Runs short test files in a few processes, one for each test/combined/*.test.ts: loading the service and starting it for the first time takes
 * longer than most of them. Files that .taprc includes by name run alone.
 * With TEST_CELLS=2, they run the tests of the API.
 */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { restart } from './seed.ts'
import { cellNumbers } from './two-cells.ts'

const root = new URL('../..', import.meta.url)
const { include }: { include: string[] } = parse(readFileSync(new URL('.taprc', root), 'utf8'))
const timeoutMs = 600_000
/** Files whose tests send requests as accounts of any cell; not those about one process or database, pages, scale and command lines. */
const ofAnyCell = {
  api: `accounts alerts app auth billing billing-events claims cue-warnings cues cues-input cues-patch deletion devices echo executions fire
    hostile-links hostile-sessions http key-routes lists mail memory memory-subscriptions outcomes refusals replays request-limits scopes sessions
    support usage-api validation waiting workers`,
  cli: 'client mcp worker-claims',
  engine: 'alert-webhooks deliveries interval',
  sql: 'last-run'
}
const processes = readdirSync(new URL('test/combined', root)).length

/** Runs the n-th part of the files, from 1. */
export const runCombined = (n: number): void => {
  const paths =
    cellNumbers.length > 1
      ? Object.entries(ofAnyCell).flatMap(([folder, names]) => names.split(/\s+/).map(name => `test/${folder}/${name}.test.ts`))
      : globSync('test/*/*.test.ts', { cwd: root })
          .filter(path => !include.some(glob => matchesGlob(path, glob)))
          .sort()
  const part = paths.filter((_, i) => i % processes === n - 1)
  t.comment(part.join(' '))
  // Their tests run afterwards, and not before all are known: an idle tap ends.
  t.test('loads its files', async () => {
    for (const path of part) {
      t.test(path, async () => restart())
      await import(new URL(path, root).href)
    }
    t.setTimeout(timeoutMs) // some set one for themselves
  })
}
