/** Makes an empty database the next cell. Nothing uses it until CELLS has it. */
import { maxCells } from '../cells/ids.ts'
import { migrate } from '../migrate/migrate.ts'
import { nameOf, readOne, withClient } from './database.ts'
import { lookAt, requireServer } from './server.ts'

export const addCell = async (urls: readonly string[], url: string, say: (line: string) => void): Promise<number> => {
  const cell = urls.length + 1
  if (cell > maxCells) throw new Error(`there are ${maxCells} cells already, and no more are possible`)
  say(`Checking ${nameOf(url)}`)
  const server = await withClient(url, lookAt)
  requireServer(server, url)
  if (server.cell !== null && server.cell !== cell) throw new Error(`${nameOf(url)} is cell ${server.cell} already, not ${cell}`)
  if (server.cell === null && !server.is_empty) throw new Error(`${nameOf(url)} is not empty: it has the schemas cue or pgboss`)
  if (server.accounts > 0) throw new Error(`${nameOf(url)} has accounts already`)
  const home = await withClient(urls[0]!, lookAt)
  if (home.cell !== 1) throw new Error('the first of CELLS is not cell 1')
  say(`Migrating it as cell ${cell}`)
  await migrate({ connectionString: url, cell, log: line => say(`  ${line}`) })
  const { id } = await withClient(url, client => readOne<{ id: number }>(client, 'select id from cue.cell'))
  if (id !== cell) throw new Error(`${nameOf(url)} has taken the number ${id}, not ${cell}`)
  if (server.wal_level !== 'logical') say('Note: wal_level is not logical, which moving the cell to another server later requires')
  say(`
${nameOf(url)} is cell ${cell}. What remains:
1. Append its URL to CELLS for all replicas, as number ${cell}${urls.length === 1 ? '; CELLS takes the place of DATABASE_URL' : ''}.
2. Restart the replicas one after the other. New accounts are made there as soon as it has the fewest; to choose
   when, start with REGISTER_CELLS=${urls.map((_, index) => index + 1).join(',')} and drop that once all replicas know the cell.
3. Check: pgcue-admin cells list`)
  return 0
}
