/**
 * Fault tolerance: `npm run chaos` runs all scenarios, `npm run chaos -- kill stop` only those named. Each has a herd of cues, three
 * replicas, and a fault in the middle; then received and expected requests are compared slot by slot.
 *
 * `npm run chaos -- neighbours` measures how much tenants can affect each other instead: see neighbours/main.ts.
 * `npm run chaos -- cells` moves a cell to another server under load: see cells/main.ts.
 * `npm run chaos -- standby` demotes, freezes and replaces the primary: see standby/main.ts.
 * `npm run chaos -- requests` interrupts operations, apply and creates: see requests/main.ts.
 *
 *   --n N          number of cues (10,000)
 *   --replicas N   number of replicas (3)
 *   --from COMMIT  the release from which `upgrade` starts (default: the one before the last change in sql/)
 *
 * Prints a table, and one line of JSON per scenario. Exits with 1 if anything was lost, duplicated without need, or late.
 */
import './unpinned.ts'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { playCells } from './cells/main.ts'
import { playAll } from './neighbours/main.ts'
import { playRequests } from './requests/main.ts'
import { play, scenarios } from './scenarios.ts'
import { openStage } from './stage.ts'
import { playStandby } from './standby/main.ts'

/** Always shown; other figures only if they are not 0. */
const shown = ['lost', 'duplicated', 'attempts_lost']

const main = async () => {
  const { names, n, replicas, seconds, isBrief, from, citus } = readArguments()
  if (names[0] === 'neighbours') process.exit((await playAll(names.slice(1), seconds)) ? 0 : 1)
  if (names[0] === 'cells') process.exit((await playCells({ seconds, isBrief, citus })) ? 0 : 1)
  if (names[0] === 'standby') process.exit((await playStandby(names.slice(1), replicas)) ? 0 : 1)
  if (names[0] === 'requests') process.exit((await playRequests(names.slice(1), n)) ? 0 : 1)
  const stage = openStage()
  let closing: Promise<void> | undefined
  let failed = false
  const close = () => (closing ??= stage.close(failed))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void close().then(() => process.exit(130)))
  }
  try {
    const open = await stage.open()
    const load = loadavg()[0]!.toFixed(1)
    console.log(`Node ${process.version}, PostgreSQL ${open.version}, ${availableParallelism()} CPUs, load ${load}`)
    for (const name of names) {
      const missing =
        scenarios[name]!.isUpgrade &&
        (await open.checkOut(from).then(
          () => '',
          error => error.message
        ))
      if (missing) {
        console.log(`\n${name}: skipped, ${missing}`)
        continue
      }
      const { figures, faults } = await play(open, name, { n, replicas, frozenMs: 40_000, awayMs: 8000, timed: true, from })
      console.log(`\n${name}: ${scenarios[name]!.title}; ${figures.slots} cues, ${replicas} replicas`)
      for (const [figure, value] of Object.entries(figures)) {
        if (value > 0 || shown.includes(figure)) console.log(`  ${figure.padEnd(30)} ${String(Math.round(value)).padStart(7)}`)
      }
      console.log(`  everything else                      0\n  ${faults.length > 0 ? `FAILED\n    ${faults.join('\n    ')}` : 'well'}`)
      console.log(JSON.stringify({ scenario: name, replicas, figures, faults }))
      failed ||= faults.length > 0
    }
    if (failed) console.log(`\nThe logs are in ${open.dir}`)
  } catch (error) {
    // Errors during shutdown are expected.
    if (!closing) {
      console.error(error)
      failed = true
    }
  }
  await close()
  process.exit(failed ? 1 : 0)
}

const readArguments = () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      n: { type: 'string', default: '10000' },
      replicas: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '15' },
      brief: { type: 'boolean', default: false },
      from: { type: 'string' },
      citus: { type: 'string' }
    }
  })
  const count = (name: 'n' | 'replicas' | 'seconds', least: number) => {
    if (!/^\d{1,7}$/.test(values[name]) || Number(values[name]) < least) throw new Error(`--${name} must be a whole number from ${least}`)
    return Number(values[name])
  }
  const unknown = ['neighbours', 'cells', 'standby', 'requests'].includes(positionals[0]!)
    ? undefined
    : positionals.find(name => !scenarios[name])
  if (unknown) throw new Error(`there is no scenario ${unknown}; there are ${Object.keys(scenarios).join(', ')}`)
  return {
    names: positionals.length > 0 ? positionals : Object.keys(scenarios),
    n: count('n', 10),
    replicas: count('replicas', 2),
    seconds: count('seconds', 1),
    isBrief: values.brief,
    from: values.from,
    citus: values.citus
  }
}

main().catch(error => {
  console.error(`chaos: ${error.message}`)
  process.exit(1)
})
