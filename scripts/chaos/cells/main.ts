/**
 * A cell moves to another server under load: `npm run chaos -- cells`. First the operator's tool is killed and stopped at every step, and each time
 * the cell must go on where it was; then it moves, and whatever was acknowledged must be there.
 *
 *   --brief        kills and stops it at one step each, and moves the cell once: some 40 s
 *   --seconds N    how long the load lasts before the last move and after it (15)
 *   --citus DIR    on the Citus cluster that the script CITUS_CLUSTER has built in DIR: home cell on the coordinator, from one worker to the other;
 *                  then with the directory as a reference table, and one node down
 *
 * Prints the tool's actions and one line of JSON. Exits with 1 when something was lost or doubled.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { openCitus } from './citus.ts'
import { playDirectory } from './directory.ts'
import { startLoad } from './load.ts'
import { interruptAdmin, openStage, runAdmin, type Stage, withDatabase } from './stage.ts'

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

type Options = { seconds: number; isBrief: boolean; citus: string | undefined }

export const playCells = async ({ citus, ...options }: Options): Promise<boolean> => {
  const opened: (() => Promise<unknown>)[] = []
  let closing: Promise<void> | undefined
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close()
  }
  const close = () => (closing ??= closeAll())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void close().then(() => process.exit(130)))
  try {
    const cluster = citus ? await openCitus(citus) : undefined
    if (cluster) opened.push(cluster.close)
    const stage = await openStage({ durable: true, replicas: 3, ...(cluster && { databases: cluster.databases }) })
    opened.push(stage.close)
    const isWell = await play(stage, options)
    if (!cluster) return isWell
    await opened.pop()!()
    return (await playDirectory(cluster)) && isWell
  } catch (error) {
    if (closing) return false
    throw error
  } finally {
    await close()
  }
}

const play = async (
  { cells, empty, another, addresses, connect, receive, startReplica }: Stage,
  { seconds, isBrief }: Omit<Options, 'citus'>
) => {
  const hook = await receive()
  const load = await startLoad({ addresses, pool: connect(cells[1]), cell: 2, accounts: 10, cues: 10, hook: hook.url })
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
    faults.push(...(await leftovers(urls[1]!)).map(left => `the move left ${left}`))
    return pauseIn(out)
  }
  for (const step of isBrief ? ['Comparing'] : steps) await interrupt('SIGKILL', step, cells, empty)
  // Once the source is being closed, stopping is too late.
  for (const step of isBrief ? ['Copied'] : steps.slice(0, -1)) {
    if ((await interrupt('SIGINT', step, cells, empty)) === 130)
      faults.push(...(await leftovers(cells[1], empty)).map(left => `SIGINT at ${step} left ${left}`))
  }
  const unmoved = load.longestGap()
  const pause_ms = await move(cells, empty)
  await delay(seconds * 1000)
  const gap_ms = load.longestGap()
  let now = empty
  if (another && !isBrief) {
    console.log('and on to a third database, killed after it is handed over')
    now = another
    for (const step of lastSteps) await interrupt('SIGKILL', step, [cells[0], empty], another)
    await move([cells[0], empty], another)
    await delay(seconds * 1000)
  }
  await startReplica(cells).catch(error => faults.push(`with the former CELLS: ${error.message}`))
  const { figures, wrong } = await load.stop(connect(now), hook.sends)
  faults.push(...wrong)
  console.log(`\nmove: writes paused for ${pause_ms} ms, ${gap_ms} ms at most between two acknowledged ones; before it ${unmoved} ms`)
  console.log(faults.length > 0 ? `FAILED\n  ${faults.slice(0, 20).join('\n  ')}` : 'well')
  console.log(JSON.stringify({ scenario: 'cells', pause_ms, gap_ms, figures, faults }))
  return faults.length === 0
}

const pauseIn = (said: string): number | undefined => {
  const [, ms] = /paused for (\d+) ms/.exec(said) ?? []
  return ms === undefined ? undefined : Number(ms)
}

const leftovers = async (...urls: string[]): Promise<string[]> => {
  const found = await Promise.all(
    urls.map(async (url, index) => {
      const rows = await withDatabase(
        url,
        `select 'the publication ' || pubname as it from pg_publication where pubname = 'pgcue_move'
         union all select 'the slot ' || slot_name from pg_replication_slots where database = current_database()
         union all select 'the schema ' || nspname from pg_namespace where nspname in ('cue', 'pgboss', 'pgcue_copy') and ${index === 1}`
      )
      return rows.map(({ it }) => it)
    })
  )
  return found.flat()
}
