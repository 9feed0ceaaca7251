/** A cue as people name it: by its id, its key, or a name that only one cue has. */
import { type Client, PgcueError } from '../client/index.ts'
import type { Context } from './command.ts'
import { CliError, exitCodes, UsageError } from './exit-codes.ts'

const isId = (text: string) => /^cue_[0-9A-Za-z]{12}$/.test(text)
/** A name that is part of so many others is found by its key or id. */
const mostPages = 10
const mostShown = 10

/** @throws PgcueError if there is none; CliError with the ids if several have the name */
export const cueIdOf = async ({ cues }: Client, text: string): Promise<string> => {
  if (isId(text)) return text
  const byKey = await cues.getByKey(text).catch((error: unknown) => {
    if (error instanceof PgcueError && error.status === 404) return error
    throw error
  })
  if (!(byKey instanceof PgcueError)) return byKey.id
  const ids: string[] = []
  // The filter by name finds those that contain it.
  let cursor: string | null | undefined
  for (let pages = 0; pages < mostPages && cursor !== null && text !== '' && text.length <= 255; pages++) {
    const page = await cues.list({ name: text, limit: 100, count_to: 0, ...(cursor && { cursor }) })
    ids.push(...page.cues.flatMap(({ id, name }) => (name === text ? [id] : [])))
    cursor = page.next_cursor
  }
  const [id, ...more] = ids
  if (id === undefined) throw byKey
  if (more.length === 0 && !cursor) return id
  const shown = `${ids.slice(0, mostShown).join(', ')}${ids.length > mostShown || cursor ? ', …' : ''}`
  throw new CliError(`Several cues have the name ${text}; use an id or a key: ${shown}`, exitCodes.usage, 'ambiguous')
}

/** An option that takes a cue. */
export const cueOption = {
  member: 'cue_id',
  value: 'CUE',
  help: 'only for this cue: its id, key or unique name',
  read: async (text: string, _: string, { connect }: Context) => cueIdOf(await connect(), text)
} as const

/** For commands that also take the key as an option, which no name can be mistaken for. */
export const byKey = { key: { type: 'string', value: 'KEY', help: "the cue's key, instead of CUE" } } as const

/** The cue that the first argument names, or `key`, with what the command needs to call the API. */
export const cueOf = async <B = Record<string, unknown>>({ args, ready }: Pick<Context, 'args' | 'ready'>, key?: string) => {
  if (key === undefined && !args[0]) throw new UsageError("missing required argument 'CUE'")
  if (key !== undefined && args.length) throw new UsageError('give either CUE or --key, not both')
  const { body, client } = await ready<B>()
  const id = key === undefined ? await cueIdOf(client, args[0]!) : (await client.cues.getByKey(key)).id
  return { body, client, id }
}
