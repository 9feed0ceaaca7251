/**
 * Runs short test files in a few processes, one for each test/combined/*.test.ts: loading the service and starting it for the first time takes
 * longer than most of them. Files that .taprc includes by name run alone.
 * With TEST_CELLS=2, they run the tests of the API.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { restart } from './seed.ts'
import { cellNumbers } from './two-cells.ts'

const root = new URL('..', import.meta.url)
const { include }: { include: string[] } = parse(readFileSync(new URL('.taprc', root), 'utf8'))
const timeoutMs = 600_000
/** Files whose tests send requests as accounts of any cell; not those about one process or database, pages, scale and command lines. */
const apiFiles =
  `accounts alert-webhooks alerts app auth billing billing-events claims client cue-warnings cues cues-input cues-patch deletion
  deliveries devices echo executions fire hostile-links hostile-sessions http interval key-routes last-run lists mail mcp memory
  memory-subscriptions outcomes refusals replays request-limits scopes sessions support usage-api validation waiting worker-claims workers`
    .split(/\s+/)
    .map(name => `${name}.test.ts`)
const processes = readdirSync(new URL('test/combined', root)).length

/** Runs the n-th part of the files, from 1. */
export const runCombined = (n: number): void => {
  const short = readdirSync(import.meta.dirname).filter(
    name => name.endsWith('.test.ts') && !include.some(glob => matchesGlob(`test/${name}`, glob))
  )
  const files = (cellNumbers.length > 1 ? apiFiles : short).filter((_, i) => i % processes === n - 1)
  t.comment(files.join(' '))
  // Their tests run afterwards, and not before all are known: an idle tap ends.
  t.test('loads its files', async () => {
    for (const name of files) {
      t.test(name, async () => restart())
      await import(new URL(name, import.meta.url).href)
    }
    t.setTimeout(timeoutMs) // some set one for themselves
  })
}
