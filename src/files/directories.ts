import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes a directory, and those it lies in, if they are not there. Node's recursive mkdir never ends where one cannot be, as in /proc. */
export const makeDirectory = (path: string, mode?: number): void => {
  const parent = dirname(path)
  if (!existsSync(parent)) makeDirectory(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
