/**
 * A cell moves to another server under load. First the operator's tool is killed and stopped at every step, and each time the cell must go on where it
 * was; then it moves, and whatever was acknowledged must be there.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { addDatabase, query, type Stage } from '../../stage/stage.ts'
import { startLoad } from './load.ts'
import { createCells, interruptAdmin, openCells, runAdmin } from './stage.ts'

/** What the tool prints before each step up to the commit that hands over, and after it. */
const steps = [
  'Checking',
  'Preparing',
  'Publishing',
  'Subscribing',
  'Copied',
  'Catching up',
  'Pausing',
  'Waiting',
  'Copying sequences',
  'Comparing',
  'Closing'
]
const lastSteps = ['Opening', 'Ending', 'Removing the subscription', 'Removing publication']

type Options = {
  seconds: number
  /** Kills and stops it at one step each, and moves the cell once. */
  isBrief: boolean
  /** Of the home cell, of cell 2, and where that can move; otherwise two servers are started. */
  databases: [string, string, string] | undefined
}

export const playMove = async (stage: Stage, { seconds, isBrief, databases }: Options) => {
  const targetServer = databases ? '' : (await stage.startServer('target')).url
  const { cells, empty, addresses, startReplica } = await openCells(stage, {
    replicas: 3,
    databases: databases ?? (await createCells(stage, targetServer))
  })
  const load = await startLoad(stage, { addresses, pool: stage.connect(cells[1]), accounts: 10, cues: 10 })
  await delay(seconds * 1000)
  const faults: string[] = []
  const interrupt = async (name: NodeJS.Signals, step: string, urls: readonly string[], to: string) => {
    const { code, seen, out, err } = await interruptAdmin(urls, ['move', '2', to], new RegExp(`^ *${step}`), name)
    console.log(`  ${name} at "${step}": ${code === null ? 'killed' : `exit code ${code}`}`)
    if (!seen) faults.push(`${step} was not reached: ${out}${err}`)
    if (code === 0) faults.push(`${name} at ${step} did not stop the tool`)
    return code
  }
  const move = async (urls: readonly string[], to: string) => {
    const { code, out, err } = await runAdmin(urls, ['move', '2', to], line => console.log(`  ${line}`)).ended
    if (code !== 0) faults.push(`the move failed: ${err}`)
    faults.push(...(await leftovers(urls[1]!)).map(object => `the move left ${object}`))
    return Number(/paused for (\d+) ms/.exec(out)?.[1])
  }
  for (const step of isBrief ? ['Comparing'] : steps) await interrupt('SIGKILL', step, cells, empty)
  // Once the source is being closed, stopping is too late.
  for (const step of isBrief ? ['Copied'] : steps.slice(0, -1)) {
    if ((await interrupt('SIGINT', step, cells, empty)) === 130)
      faults.push(...(await leftovers(cells[1], empty)).map(object => `SIGINT at ${step} left ${object}`))
  }
  load.longestGap()
  const pause_ms = await move(cells, empty)
  await delay(seconds * 1000)
  const gap_ms = load.longestGap()
  let now = empty
  if (!databases && !isBrief) {
    console.log('and on to a third database, killed after it is handed over')
    now = await addDatabase(stage.serverUrl, 'another')
    for (const step of lastSteps) await interrupt('SIGKILL', step, [cells[0], empty], now)
    await move([cells[0], empty], now)
    await delay(seconds * 1000)
  }
  await startReplica('former-cells').catch(error => faults.push(`with the former CELLS: ${error.message}`))
  const { figures, wrong } = await load.stop(now)
  return { pause_ms, gap_ms, figures, faults: [...faults, ...wrong].slice(0, 20) }
}

const leftovers = async (source: string, target?: string): Promise<string[]> => {
  const rows = await query(
    source,
    `select 'the publication ' || pubname as it from pg_publication where pubname = 'pgcue_move'
      union all select 'the slot ' || slot_name from pg_replication_slots where database = current_database()`
  )
  const schemas = "select 'the schema ' || nspname as it from pg_namespace where nspname in ('cue', 'pgboss', 'pgcue_copy')"
  return [...rows, ...(target ? await query(target, schemas) : [])].map(({ it }) => it)
}
