/** What help says beside commands and options, and the command that somebody meant. */
import { exitCodes } from './exit-codes.ts'

export const exitCodeHelp = `Exit codes
  0  done
  1  refused by the service, or failed
  2  invalid arguments, or a missing, invalid or insufficient key
  3  not found
  4  the service is unreachable or unavailable
  ${exitCodes.differs}  something differs (apply --exit-code)`

export const environmentHelp = `Environment
  PGCUE_API_KEY    API key (default: the key stored by pgcue login)
  PGCUE_BASE_URL   address of the service (default: that of the last login, else http://localhost:8080)
  NO_COLOR         disable colours on a terminal
  XDG_CONFIG_HOME  directory of pgcue/credentials.json, which stores keys and only you can read (default: ~/.config)`

/** The name most similar to what was typed, whether or not more words follow; undefined if none is. */
export const suggestion = (typed: string, names: string[]): string | undefined => {
  const distances = names.map(name => {
    const words = typed.split(' ').slice(0, name.split(' ').length).join(' ')
    return { name, distance: distanceOf(words, name), most: Math.max(1, Math.floor(name.length / 3)) }
  })
  const [nearest] = distances.sort((a, b) => a.distance - b.distance)
  return nearest && nearest.distance <= nearest.most ? nearest.name : undefined
}

/** Number of insertions, deletions and replacements of letters between two words. */
const distanceOf = (a: string, b: string): number => {
  let row = [...b, ''].map((_, i) => i)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...b].entries()) next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (letter === other ? 0 : 1)))
    row = next
  }
  return row.at(-1)!
}
