/**
 * Measures the service: `npm run bench` runs the usual measures, `npm run bench -- herd idle` only those named.
 *
 *   --runs N      number of runs, instead of each measure's default
 *   --n N         number of cues, or of whatever the measure's title counts
 *   --seconds N   duration of a run, if the title mentions seconds
 *   --peers       the same herd with pg-boss, graphile-worker and BullMQ, alternating with ours
 *   --profile DIR CPU profiles of the herd's warm runs
 *
 * PIN=0 leaves scheduling to the system; otherwise the service has one CPU, and database and receiver share another.
 * BENCH_POSTGRES_BIN is the directory of another PostgreSQL.
 *
 * Prints a table, and one line of JSON per measure: name → [median, minimum, maximum].
 */
import { availableParallelism, loadavg } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import api from './api.ts'
import cells from './cells.ts'
import claims from './claims.ts'
import { summary, table } from './figures.ts'
import firing from './firing.ts'
import hanging from './hanging.ts'
import herd from './herd.ts'
import idle from './idle.ts'
import type { Measure } from './measure.ts'
import peers from './peers/peers.ts'
import { isPinned } from './processes.ts'
import replicas from './replicas.ts'
import spread from './spread.ts'
import { openStage } from './stage.ts'
import storage from './storage.ts'
import sustained from './sustained.ts'

const measures: Record<string, Measure> = { herd, spread, hanging, api, firing, idle, replicas, storage, cells, claims, sustained, peers }
/** The measures run by default. */
const usualMeasures = ['herd', 'spread', 'hanging', 'api', 'firing', 'idle', 'replicas', 'storage']

const main = async () => {
  const { names, runs, count, seconds, profileDir } = readArguments()
  let stage: ReturnType<typeof openStage> | undefined
  let closing: Promise<void> | undefined
  const close = () => (closing ??= stage?.close() ?? Promise.resolve())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void close().then(() => process.exit(130)))
  }
  try {
    stage = openStage()
    const open = await stage.open()
    const load = loadavg()[0]!.toFixed(1)
    console.log(
      `Node ${process.version}, PostgreSQL ${open.version}, ${availableParallelism()} CPUs, ${isPinned ? 'pinned' : 'not pinned'}, load ${load}`
    )
    for (const name of names) {
      const { title, measure, unit, ...usual } = measures[name]!
      const options = { runs: runs ?? usual.runs, n: (unit === 'seconds' ? seconds : count) ?? usual.n, profileDir }
      const figures = await measure(open, options)
      console.log(`\n${table(`${name}: ${title(options.n)}`, figures)}`)
      console.log(JSON.stringify({ measure: name, n: options.n, runs: options.runs, pinned: isPinned, figures: summary(figures) }))
    }
  } catch (error) {
    // Errors during shutdown are expected.
    if (!closing) {
      console.error(error)
      process.exitCode = 1
    }
  }
  await close()
  process.exit()
}

const readArguments = () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: 'string' },
      n: { type: 'string' },
      seconds: { type: 'string' },
      peers: { type: 'boolean' },
      profile: { type: 'string' }
    }
  })
  const number = (name: 'runs' | 'n' | 'seconds') => {
    const value = values[name]
    if (value !== undefined && !/^[1-9]\d*$/.test(value)) throw new Error(`--${name} must be a whole number from 1`)
    return value === undefined ? undefined : Number(value)
  }
  const unknown = positionals.find(name => !measures[name])
  if (unknown) throw new Error(`there is no measure ${unknown}; there are ${Object.keys(measures).join(', ')}`)
  const named = [...positionals, ...(values.peers ? ['peers'] : [])]
  return {
    names: named.length > 0 ? named : usualMeasures,
    runs: number('runs'),
    count: number('n'),
    seconds: number('seconds'),
    profileDir: values.profile === undefined ? undefined : resolve(values.profile)
  }
}

main().catch(error => {
  console.error(`bench: ${error.message}`)
  process.exit(1)
})
