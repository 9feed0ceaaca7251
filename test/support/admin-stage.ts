/** The operator's tool, run in this process. */
import { run } from '../../src/admin/run.ts'

type Options = {
  onLine?: (line: string) => void
  stopping?: AbortSignal
}

/** `pgcue-admin cells` with CELLS of these. */
export const runHere = async (cells: readonly string[], args: string[], options: Options = {}) => {
  const { onLine = () => {}, stopping = new AbortController().signal } = options
  let out = ''
  let err = ''
  const stdout = {
    write: (text: string) => {
      out += text
      onLine(text.trimEnd())
    }
  }
  const stderr = {
    write: (text: string) => {
      err += text
    }
  }
  const code = await run(['cells', ...args], { env: { CELLS: cells.join(' ') }, stdout, stderr, stopping })
  return { code, out, err }
}
