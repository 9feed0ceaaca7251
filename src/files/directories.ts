import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Creates a directory and its missing parents. Node's recursive mkdir never returns where a directory cannot be created, as in /proc. */
export const makeDirectory = (path: string, mode?: number): void => {
  const parent = dirname(path)
  if (!existsSync(parent)) makeDirectory(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
