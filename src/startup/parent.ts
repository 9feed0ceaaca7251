/**
 * Ends the replica with `npm start`: npm passes signals to the shell that runs the script, and the shell may exit without passing them on.
 */
import { readFileSync } from 'node:fs'

const everyMs = 500

/** Works on Linux only. */
const read = (pid: number, what: 'stat' | 'cmdline') => {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'utf8')
  } catch {
    return ''
  }
}
const parentOf = (pid: number) => (pid === process.pid ? process.ppid : Number(read(pid, 'stat').split(') ')[1]?.split(' ')[1] ?? 0))

/** Process ids from this process's parent up to npm, as far as visible. */
const shellsAndNpm = (): number[] => {
  const chain = [process.ppid]
  for (let pid = process.ppid; pid > 1; pid = parentOf(pid)) {
    if (/^npm\b|\bnpm(-cli\.js)?\0/.test(read(pid, 'cmdline'))) return chain
    chain.push(parentOf(pid))
  }
  return [process.ppid]
}

/**
 * Calls `call` once when npm or its shell has exited, if an npm script started this process. Otherwise the process may outlive its parent.
 */
export const whenNpmEnds = (call: () => void): void => {
  if (!process.env.npm_lifecycle_event) return
  const chain = shellsAndNpm()
  const timer = setInterval(() => {
    if (chain.every((pid, n) => parentOf(n === 0 ? process.pid : chain[n - 1]!) === pid)) return
    clearInterval(timer)
    call()
  }, everyMs)
  timer.unref()
}
