/** A line on a terminal that counts the seconds until the next try, and goes when it begins. */
import type { PgcueError } from '../client/index.ts'
import type { Sink } from './io.ts'
import { printable } from './printable.ts'

const clear = '\r\x1b[K'

export const countdown = (sink: Sink) => (error: PgcueError, waitMs: number) => {
  const end = Date.now() + waitMs
  const show = () => {
    const seconds = Math.ceil((end - Date.now()) / 1000)
    if (seconds > 0) sink.write(`${clear}pgcue: ${printable(error.message)}; next try in ${seconds} s`)
  }
  show()
  const timer = setInterval(show, 500)
  setTimeout(() => {
    clearInterval(timer)
    sink.write(clear)
  }, waitMs)
}
