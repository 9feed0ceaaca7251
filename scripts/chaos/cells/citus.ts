/** A Citus cluster that was built to try things: a coordinator and two workers, whose databases are emptied, for as long as they are needed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withDatabase } from './stage.ts'

const run = promisify(execFile)
const script = fileURLToPath(new URL('../../../../shared/citus/cluster', import.meta.url))

/** @throws if it was not built */
export const openCitus = async (dir: string) => {
  const cluster = process.env.CITUS_CLUSTER ?? script
  if (!existsSync(cluster)) throw new Error(`${cluster} is missing; CITUS_CLUSTER names another place`)
  if (!existsSync(join(dir, 'root'))) throw new Error(`${dir} has no Citus: run ${cluster} build ${dir}`)
  const { stdout } = await run(cluster, ['start', dir])
  const urls = [...stdout.matchAll(/^(?:coordinator|worker) (\S+)$/gm)].map(([, url]) => url!)
  if (urls.length !== 3) throw new Error(`unexpected: ${stdout}`)
  for (const url of urls) {
    await withDatabase(url, 'begin read write; alter database pgcue reset default_transaction_read_only; commit')
    for (const schema of ['cue', 'pgboss', 'pgcue_copy']) await withDatabase(url, `drop schema if exists ${schema} cascade`)
  }
  return { databases: urls as [string, string, string], close: () => run(cluster, ['stop', dir]) }
}
