/** Migrates all cells, one after the other. */
import { migrate } from '../migrate/migrate.ts'
import { nameOf, reasonOf } from './database.ts'

export const migrateCells = async (urls: readonly string[], say: (line: string) => void): Promise<number> => {
  for (const [index, connectionString] of urls.entries()) {
    const cell = index + 1
    say(`Cell ${cell}: migrating ${nameOf(connectionString)}`)
    try {
      await migrate({ connectionString, cell, log: line => say(`Cell ${cell}: ${line}`) })
    } catch (error) {
      const remaining = urls.length - cell
      say(`Cell ${cell}: failed: ${reasonOf(error)}`)
      say(
        `Cells before it are migrated${remaining > 0 ? `; ${remaining} after it ${remaining > 1 ? 'are' : 'is'} not` : ''}. Run the command again when this is solved.`
      )
      return 1
    }
  }
  say(urls.length > 1 ? `All ${urls.length} cells are migrated` : 'The cell is migrated')
  return 0
}
