/** `pgcue cues chain`: a chain of cues as a tree. */
import type { CueSummary, Cues } from '../client/index.ts'
import { command } from './command.ts'
import { byKey, cueOf } from './reference.ts'
import { scheduleText } from './schedule.ts'

type Listed = Cues['cues'][number]
type Row = { tree: string; cue: Listed; latest: CueSummary['latest'][number] | undefined }

export const chain = command({
  options: byKey,
  notes: 'A cue that follows several has a line below each of them; its own followers are only below the first. * marks the cue itself.',
  run: async context => {
    const { cues, id } = await cueOf(context, context.options.key)
    const all: Listed[] = []
    for await (const cue of cues.list({ chain: id, summary: true, limit: 100, count_to: 0 })) all.push(cue)
    return { id, cues: all }
  },
  text: ({ id, cues }, out) =>
    out.table(rowsOf(cues, id), [
      ['cue', 'tree'],
      ['status', ({ cue }) => cue.status],
      ['schedule', ({ cue }) => scheduleText(cue)],
      ['next run', ({ cue }) => cue.next_run],
      ['latest', ({ latest }) => latest?.status],
      ['outcome', ({ latest }) => latest?.outcome_state]
    ])
})

const nameOf = ({ key, id }: Listed) => key ?? id

/** A line for each edge, below the cue that is followed. */
const rowsOf = (cues: Listed[], id: string): Row[] => {
  const sorted = cues.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
  const names = new Set(sorted.map(nameOf))
  const followersOf = (name: string) => sorted.filter(({ after }) => after?.cues.includes(name))
  const shown = new Set<string>()
  const rows: Row[] = []
  const add = (cue: Listed, branch: string, indent: string) => {
    const name = nameOf(cue)
    rows.push({ tree: `${branch}${name}${cue.id === id ? ' *' : ''}`, cue, latest: cue.summary?.latest[0] })
    if (shown.has(name)) return
    shown.add(name)
    for (const [n, follower] of followersOf(name).entries()) {
      const isLast = n === followersOf(name).length - 1
      add(follower, `${indent}${isLast ? '└─ ' : '├─ '}`, `${indent}${isLast ? '   ' : '│  '}`)
    }
  }
  for (const cue of sorted) if (!cue.after?.cues.some(parent => names.has(parent))) add(cue, '', '')
  return rows
}
