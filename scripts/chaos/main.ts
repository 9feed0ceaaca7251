/**
 * Fault tolerance: `npm run chaos` runs the scenarios of scenarios.ts, `npm run chaos -- kill stop` only those named.
 *
 *   npm run chaos -- neighbours [ATTACK…]    how much tenants can affect each other, see neighbours/play.ts
 *   npm run chaos -- cells                   moves a cell to another server under load, see cells/move.ts
 *   npm run chaos -- standby [FAILOVER…]     demotes, freezes and replaces the primary, see standby.ts
 *   npm run chaos -- held [chain] [approvals] crashes while executions wait for others or for a person, see held.ts
 *   npm run chaos -- gates [GATE…]           crashes, freezes and fails behind gates, see gates.ts
 *
 *   --n N          number of cues (10,000)
 *   --replicas N   number of replicas (3)
 *   --seconds N    duration of each attack, of the load before and after a move, and of limits of gates (15)
 *   --from COMMIT  the release from which `upgrade` starts (default: the one before the last change in sql/)
 *   --brief        interrupts a move at two steps only
 *   --citus DIR    moves a cell between nodes of the Citus cluster that the script CITUS_CLUSTER has built in DIR
 *
 * Prints one line of JSON per scenario. Exits with 1 if anything is faulty.
 */
import { parseArgs } from 'node:util'
import { onStage, pick, wholeNumber } from '../stage/play.ts'
import type { Stage } from '../stage/stage.ts'
import { openCitus } from './cells/citus.ts'
import { playMove } from './cells/move.ts'
import { settings } from './cells/stage.ts'
import { gates } from './gates.ts'
import { held } from './held.ts'
import { attacks } from './neighbours/attacks.ts'
import { playAttack } from './neighbours/play.ts'
import { checkOut, play, scenarios } from './scenarios.ts'
import { failovers, playFailover } from './standby.ts'

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
const [n, seconds] = [wholeNumber('n', values.n, 10), wholeNumber('seconds', values.seconds)]
const replicas = wholeNumber('replicas', values.replicas, 2)

type Suite = {
  table: object
  settings?: Record<string, string>
  /** The result is printed as JSON. */
  play: (stage: Stage, name: string) => Promise<{ faults: string[] }>
}

const options = { n, replicas, seconds, frozenMs: 40_000, awayMs: 8000, demotedMs: 15_000, steadyMs: 5000, timed: true }
/** Scenarios that each are a function. */
const suiteOf = (table: typeof gates): Suite => ({
  table,
  play: async (stage, name) => ({ scenario: name, replicas, ...(await table[name]!(stage, options)) })
})
const herd: Suite = {
  table: scenarios,
  play: async (stage, name) => {
    console.log(`\n${name}: ${scenarios[name]!.title}`)
    let former: string | undefined
    try {
      former = scenarios[name]!.isUpgrade && checkOut(stage, values.from)
    } catch (error) {
      return { scenario: name, skipped: (error as Error).message, faults: [] }
    }
    return { scenario: name, replicas, ...(await play(stage, name, { ...options, former })) }
  }
}
const suites: Record<string, Suite> = {
  neighbours: { table: attacks, play: (stage, name) => playAttack(stage, name, seconds) },
  cells: {
    table: { move: true },
    settings,
    play: async stage => {
      const databases = values.citus === undefined ? undefined : await openCitus(values.citus)
      return { scenario: 'cells', ...(await playMove(stage, { seconds, isBrief: values.brief, databases })) }
    }
  },
  standby: {
    table: failovers,
    play: async (stage, name) => ({ scenario: name, replicas, ...(await playFailover(stage, name, options)) })
  },
  held: suiteOf(held),
  gates: suiteOf(gates)
}

const suite = suites[positionals[0]!] ?? herd
const names = pick(suite.table, suite === herd ? positionals : positionals.slice(1))

await onStage({ settings: suite.settings }, async stage => {
  let isWell = true
  for (const name of names) {
    const result = await suite.play(stage, name)
    console.log(JSON.stringify(result))
    isWell &&= result.faults.length === 0
  }
  return isWell
})
