/**
 * Measures the service: `npm run bench` runs the usual measures, `npm run bench -- herd api` only those named.
 *
 *   --runs N      number of runs, instead of each measure's default
 *   --n N         number of cues, or of whatever the measure's title counts
 *   --seconds N   duration of a run, if the title mentions seconds
 *   --peers       the same herd with pg-boss, graphile-worker and BullMQ, alternating with ours
 *
 * The service has one CPU, and database and receiver share another, where the system can do that. TEST_POSTGRES_BIN is the directory of another
 * PostgreSQL. Prints a table, and one line of JSON per measure: name → [median, minimum, maximum].
 */
import { parseArgs } from 'node:util'
import { summary } from '../stage/figures.ts'
import { onStage, pick, wholeNumber } from '../stage/play.ts'
import { endStage, pin, startedSoFar } from '../stage/processes.ts'
import { api } from './api.ts'
import { herd, tracked } from './herd.ts'
import { idle } from './idle.ts'
import { hanging, replicas, spread } from './lateness.ts'
import { besidePeers } from './peers/compare.ts'
import type { Measure } from './service.ts'
import { storage } from './storage.ts'
import { sustained } from './sustained.ts'

const measures: Record<string, Measure> = { herd, tracked, spread, hanging, api, idle, replicas, storage, sustained, peers: besidePeers }
const usual = ['herd', 'spread', 'hanging', 'api', 'idle', 'replicas', 'storage']

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string' }, n: { type: 'string' }, seconds: { type: 'string' }, peers: { type: 'boolean' } }
})
const count = (name: 'runs' | 'n' | 'seconds') => (values[name] === undefined ? undefined : wholeNumber(name, values[name]))
const names = pick(measures, [...positionals, ...(values.peers ? ['peers'] : [])], usual)
const pinned = pin()

// Lines of the server's log start with the application.
await onStage({ settings: { log_line_prefix: '%a: ' } }, async stage => {
  for (const name of names) {
    const { title, measure, unit, ...defaults } = measures[name]!
    const options = { runs: count('runs') ?? defaults.runs, n: count(unit ?? 'n') ?? defaults.n }
    const started = startedSoFar()
    const figures = summary(await measure(stage, options))
    await endStage(true, started)
    console.log(`\n${name}: ${title(options.n)}`)
    console.table(Object.fromEntries(Object.entries(figures).map(([name, [median, min, max]]) => [name, { median, min, max }])))
    console.log(JSON.stringify({ measure: name, ...options, pinned, figures }))
  }
  return true
})
