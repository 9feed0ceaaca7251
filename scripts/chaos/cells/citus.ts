/** A Citus cluster that was built to try things: a coordinator and two workers, whose databases are emptied, for as long as they are needed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { withDatabase } from './stage.ts'

const run = promisify(execFile)

export type Cluster = Awaited<ReturnType<typeof openCitus>>

/** CITUS_CLUSTER is a script that starts and stops the cluster in a directory, and prints its URLs. @throws if there is none */
export const openCitus = async (dir: string) => {
  const cluster = process.env.CITUS_CLUSTER
  if (!cluster) throw new Error('--citus needs CITUS_CLUSTER, the script that starts and stops the cluster')
  if (!existsSync(join(dir, 'root'))) throw new Error(`${dir} has no Citus: run ${cluster} build ${dir}`)
  await run(cluster, ['stop', dir]) // what a killed run has left
  const { stdout } = await run(cluster, ['start', dir])
  const urls = [...stdout.matchAll(/^(?:coordinator|worker) (\S+)$/gm)].map(([, url]) => url!)
  if (urls.length !== 3) throw new Error(`unexpected: ${stdout}`)
  const empty = async () => {
    for (const url of urls) {
      await withDatabase(url, 'begin read write; alter database pgcue reset default_transaction_read_only; commit')
      for (const schema of ['cue', 'pgboss', 'pgcue_copy']) await withDatabase(url, `drop schema if exists ${schema} cascade`)
    }
  }
  await empty()
  const pgCtl = join(dir, 'root/usr/lib/postgresql/15/bin/pg_ctl')
  const asServer = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : []
  return {
    databases: urls as [string, string, string],
    /** Removes what a former scenario has left. */
    empty,
    /** Stops one server as a crash does, or starts it. */
    node: async (name: 'coordinator' | 'worker1' | 'worker2', action: 'stop' | 'start') => {
      const data = join(dir, 'data', name)
      const [command, ...args] = [
        ...asServer,
        pgCtl,
        '-D',
        data,
        ...(action === 'stop' ? ['-m', 'immediate'] : ['-l', join(data, 'log')]),
        '-w',
        action
      ]
      await run(command!, args)
    },
    close: () => run(cluster, ['stop', dir])
  }
}
