import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/**
 * The parent of temporary directories with databases: in memory if there is room. Copying an empty server's 50 MB takes 80 ms of a CPU there
 * and a second on a disk; cloning a database, some 900 files, 17 ms and 130 ms.
 */
export const memoryDir = (): string => {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (bavail * bsize > 3 * 2 ** 30) return '/dev/shm'
  } catch {} // not on Linux
  return tmpdir()
}
