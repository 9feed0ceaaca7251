/** A cue as people name it: by its id, its key, or a name that only one cue has. */
import { type CallOptions, type Client, PgcueError } from '../client/index.ts'
import { type Command, type Context, command } from './command.ts'
import { CliError, exitCodes, UsageError } from './exit-codes.ts'
import type { Output } from './output.ts'

const isId = (text: string) => /^cue_[0-9A-Za-z]{12}$/.test(text)
/** Of those whose names contain the text. A name that is part of more is found by its key or id. */
const mostSearched = 1000
const mostShown = 10

/** @throws PgcueError if there is none; CliError with the ids if several have the name */
export const cueIdOf = async ({ cues }: Client, text: string): Promise<string> => {
  if (isId(text)) return text
  const missing = await cues.getByKey(text).catch((error: unknown) => error)
  if (!(missing instanceof Error)) return (missing as { id: string }).id
  if (!(missing instanceof PgcueError && missing.status === 404)) throw missing
  const ids: string[] = []
  let searched = 0
  if (text !== '' && text.length <= 255)
    for await (const { id, name } of cues.list({ name: text, limit: 100, count_to: 0 })) {
      if (name === text) ids.push(id)
      if (++searched === mostSearched) break
    }
  if (ids.length === 0) throw missing
  if (ids.length === 1 && searched < mostSearched) return ids[0]!
  const shown = `${ids.slice(0, mostShown).join(', ')}${ids.length > mostShown || searched === mostSearched ? ', …' : ''}`
  throw new CliError(`Several cues have the name ${text}; use an id or a key: ${shown}`, exitCodes.usage, 'ambiguous')
}

/** An option that takes a cue. */
export const cueOption = {
  member: 'cue_id',
  value: 'CUE',
  help: 'only for this cue: its id, key or unique name',
  read: async (text: string, _: string, { connect }: Context) => cueIdOf(connect(), text)
} as const

/** For commands that also take the key as an option, which no name can be mistaken for. */
export const byKey = { key: { type: 'string', value: 'KEY', help: "the cue's key, instead of CUE" } } as const

/** The cue that the first argument names, or `key`, with what the command needs to call the API. */
export const cueOf = async <B = Record<string, unknown>>({ args: [cue], ready }: Pick<Context, 'args' | 'ready'>, key?: string) => {
  if (key === undefined && !cue) throw new UsageError("missing required argument 'CUE'")
  if (key !== undefined && cue !== undefined) throw new UsageError('give either CUE or --key, not both')
  const request = await ready<B>()
  const { cues } = request.client
  return { ...request, cues, id: key === undefined ? await cueIdOf(request.client, cue!) : (await cues.getByKey(key)).id }
}

type Act<A, B> = (cues: Client['cues'], id: string, body: B, call: CallOptions) => Promise<A>

/** A command that calls the API for the cue that its first argument names, and prints the answer. */
export const onCue = <A, B = object>(
  act: Act<A, B>,
  text: (answer: A, out: Output) => unknown,
  definition: Pick<Command, 'notes' | 'options'>
): Command =>
  command({
    ...definition,
    run: async context => {
      const { cues, id, body, call } = await cueOf<B>(context)
      return act(cues, id, body, call)
    },
    text
  })
