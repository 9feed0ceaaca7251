/** A Citus cluster that was built to try things: a coordinator and two workers, whose databases are emptied, for as long as they are needed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { atEnd } from '../../stage/processes.ts'
import { query } from '../../stage/stage.ts'

const run = promisify(execFile)

/** CITUS_CLUSTER is a script that starts and stops the cluster in a directory, and prints its URLs. @throws if there is none */
export const openCitus = async (dir: string): Promise<[string, string, string]> => {
  const cluster = process.env.CITUS_CLUSTER
  if (!cluster) throw new Error('--citus needs CITUS_CLUSTER, the script that starts and stops the cluster')
  if (!existsSync(join(dir, 'root'))) throw new Error(`${dir} has no Citus: run ${cluster} build ${dir}`)
  await run(cluster, ['stop', dir]) // what a killed run has left
  atEnd(() => run(cluster, ['stop', dir]))
  const { stdout } = await run(cluster, ['start', dir])
  const urls = [...stdout.matchAll(/^(?:coordinator|worker) (\S+)$/gm)].map(([, url]) => url!)
  if (urls.length !== 3) throw new Error(`unexpected: ${stdout}`)
  for (const url of urls) {
    await query(url, 'begin read write; alter database pgcue reset default_transaction_read_only; commit')
    for (const schema of ['cue', 'pgboss', 'pgcue_copy']) await query(url, `drop schema if exists ${schema} cascade`)
  }
  return urls as [string, string, string]
}
