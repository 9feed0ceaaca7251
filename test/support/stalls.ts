/** Measures stalls of the event loop, and builds texts meant to stall it. */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * The longest stall during some work, in milliseconds of this thread's processor time, which other processes cannot lengthen: the minimum of
 * three runs, since the first compiles and any may collect garbage. Stops after one that is short enough.
 */
export const longestStall = async (work: () => Promise<void>, enough = 0): Promise<number> => {
  let least = Infinity
  for (let tries = 0; tries < 3 && least >= enough; tries++) {
    let longest = 0
    let last = processorTime()
    const look = setInterval(() => {
      const now = processorTime()
      longest = Math.max(longest, now - last)
      last = now
    }, 1)
    await work()
    await sleep(3)
    clearInterval(look)
    least = Math.min(least, longest)
  }
  return least
}

const processorTime = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const list = (item: string, bytes: number) =>
  `[${Array(Math.floor((bytes - 2) / (Buffer.byteLength(item) + 1)))
    .fill(item)
    .join()}]`
const object = (bytes: number, key: (n: number) => string) => {
  const members: string[] = []
  for (let size = 2, n = 0; ; n++) {
    const member = `"${key(n)}":1`
    size += Buffer.byteLength(member) + 1
    if (size > bytes) return `{${members}}`
    members.push(member)
  }
}
const shuffled = (n: number) => (n * 7919) % 1_679_616
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

/** JSON up to a given size that is expensive to parse, sort, write or scan. */
const hostile: Record<string, (bytes: number) => string> = {
  'numbers to be rewritten': bytes => list('1e5', bytes),
  'floats of many digits': bytes => list('1.7976931348623157e308', bytes),
  'short floats': bytes => list('1.5', bytes),
  'empty strings': bytes => list('""', bytes),
  'empty lists': bytes => list('[]', bytes),
  'small objects out of order': bytes => list('{"b":1,"a":1}', bytes),
  'one list in another': bytes => list(nested(60), bytes),
  'keys out of order': bytes => object(bytes, n => shuffled(n).toString(36)),
  'keys beyond the basic plane': bytes => object(bytes, n => String.fromCodePoint(0x10000 + (shuffled(n) % 60000)) + n),
  'one key again and again': bytes => object(bytes, () => ''),
  'tasks again and again': bytes => object(bytes, () => 'task'),
  'a character that takes six bytes': bytes => `"${'\x7f'.repeat(bytes - 2)}"`,
  'strings of one such character': bytes => list('"\x7f"', bytes),
  'characters beyond ASCII': bytes => `"${'я'.repeat(bytes / 2 - 1)}"`,
  'escaped quotes': bytes => `"${'\\"'.repeat(bytes / 2 - 1)}"`,
  'escaped characters': bytes => `"${'\\u00e9'.repeat((bytes - 2) / 6)}"`,
  blanks: bytes => `${' '.repeat(bytes - 1)}1`
}

export const hostileJson = (bytes: number, kinds = Object.keys(hostile)): Record<string, string> =>
  Object.fromEntries(kinds.map(kind => [kind, hostile[kind]!(bytes)]))

/** Two of these texts, of different kinds: large JSON is read by the same code on all routes, of which one gets all of them. */
export const someHostileJson = (bytes: number): Record<string, string> => hostileJson(bytes, ['one list in another', 'keys out of order'])
