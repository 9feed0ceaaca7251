/** `pgcue cues chain`: a cue with those that it follows and those that follow it, as a tree. */
import type { Client, CueDetail } from '../client/index.ts'
import { afterText } from '../schedule/after-text.ts'
import { command } from './command.ts'
import type { Output } from './output.ts'
import { byKey, cueIdOf, cueOf } from './reference.ts'
import { scheduleText } from './schedule.ts'

type Link = Pick<CueDetail, 'id' | 'key' | 'name' | 'status' | 'schedule' | 'after' | 'followers' | 'next_run'>
type Chain = { cue: string; cues: Link[] }

const nameOf = ({ key, id }: Pick<Link, 'key' | 'id'>) => key ?? id

/** Reads a cue, the cues above it and the cues below it. */
const read = async (client: Client, id: string): Promise<Chain> => {
  const found = new Map<string, Link>()
  const link = async (reference: string) => {
    const known = found.get(reference)
    if (known) return known
    const { key, name, status, schedule, after, followers, next_run, ...cue } = await client.cues.get(await cueIdOf(client, reference))
    const read = { id: cue.id, key, name, status, schedule, after, followers, next_run }
    found.set(nameOf(read), read)
    return read
  }
  const follow = async (reference: string, next: (link: Link) => string[], seen = new Set<string>()) => {
    if (seen.has(reference)) return
    seen.add(reference)
    for (const name of next(await link(reference))) await follow(name, next, seen)
  }
  const cue = nameOf(await link(id))
  await follow(cue, ({ after }) => after?.cues ?? [])
  await follow(cue, ({ followers }) => followers)
  return { cue, cues: [...found.values()] }
}

const show = ({ cue, cues }: Chain, out: Output) => {
  const byName = new Map(cues.map(link => [nameOf(link), link]))
  const shown = new Set<string>()
  const draw = (link: Link, indent: string, branch: string, below: string) => {
    const name = nameOf(link)
    const isRepeated = shown.has(name)
    shown.add(name)
    const when = [
      link.schedule && scheduleText(link),
      link.after && (link.schedule || link.after.cues.length > 1 || link.after.when !== 'success') && afterText(link.after).toLowerCase()
    ]
    const notes = [link.status === 'active' ? null : link.status, ...when].filter(Boolean).join(', ')
    out.line(`${indent}${branch}${name}${notes ? `  ${notes}` : ''}${isRepeated ? '  (above)' : ''}`, name === cue ? 'bold' : undefined)
    if (isRepeated) return
    const next = link.followers.flatMap(follower => byName.get(follower) ?? [])
    for (const [n, follower] of next.entries()) {
      const isLast = n === next.length - 1
      draw(follower, indent + below, isLast ? '└─ ' : '├─ ', isLast ? '   ' : '│  ')
    }
  }
  for (const link of cues) if (!link.after?.cues.some(name => byName.has(name))) draw(link, '', '', '')
}

export const chain = command({
  options: byKey,
  notes: 'Shows the cues that lead to the cue, and those that follow it, also indirectly.',
  run: async context => {
    const { client, id } = await cueOf(context, context.options.key)
    return read(client, id)
  },
  text: show
})
