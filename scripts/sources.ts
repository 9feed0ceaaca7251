import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The text of the hand-written modules of a folder: what it doesn't name is not used there. */
export const sourcesIn = (folder: string): string => {
  const dir = fileURLToPath(new URL(`../${folder}`, import.meta.url))
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(name => /(?<!\.types|\.generated)\.ts$/.test(name))
  return names.map(name => readFileSync(join(dir, name), 'utf8')).join('\n')
}
