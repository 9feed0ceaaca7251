/** `pgcue export`: writes cues as a file for `pgcue apply`. */
import type { Cue } from '../client/index.ts'
import { defaults } from '../cues/columns.ts'
import { command, none } from './command.ts'
import { escapeVariables } from './declared.ts'
import { tagFilter } from './filters.ts'
import { parseExactly } from './json.ts'
import { writeYaml } from './yaml.ts'

const PAGE = 100

export const exportCues = command({
  summary: 'Write cues that have keys as YAML for pgcue apply',
  options: { set: { type: 'string', value: 'NAME', help: 'only cues of this set' }, ...tagFilter },
  notes: 'Header values are masked. Applied to the same cues, a mask keeps the stored value.',
  run: async context => {
    none(context)
    const { options, out, io } = context
    const { cues: client } = await context.connect()
    const all: Cue[] = []
    for (let total = 1; all.length < total; ) {
      const page = await client.list({ set: options.set, tag: options.tag, limit: PAGE, offset: all.length } as never)
      all.push(...page.cues)
      total = page.cues.length === 0 ? 0 : page.total
    }
    const keyed = all.filter(({ key }) => key !== null).toSorted((a, b) => (a.key! < b.key! ? -1 : 1))
    if (keyed.length < all.length) io.stderr.write(`pgcue: left out ${all.length - keyed.length} cues without a key\n`)
    const sets = [...new Set(keyed.map(cue => cue.managed_by))]
    const declarations = sets.map(set => ({
      ...(set !== null && { set }),
      cues: keyed.filter(cue => cue.managed_by === set).map(declared)
    }))
    const files = parseExactly(escapeVariables(JSON.stringify(declarations))) as typeof declarations
    out.show(files, () => void io.stdout.write(files.map(file => writeYaml(JSON.stringify(file))).join('---\n')))
  }
})

/** The fields of a cue that differ from their defaults. */
const declared = (cue: Cue) => {
  const {
    key,
    name,
    description,
    tags,
    transport,
    schedule,
    callback,
    payload,
    retry,
    on_failure,
    delivery,
    alerts,
    catch_up,
    overlap,
    verification,
    status
  } = cue
  const { type: _, ...when } = schedule
  return without({
    key,
    name,
    description,
    tags: tags.length > 0 ? tags : null,
    transport: transport === 'worker' ? transport : null,
    schedule: without(when, { timezone: defaults.timezone }),
    callback: group(callback, 'callback_'),
    payload: JSON.stringify(payload) === defaults.payload ? null : payload,
    retry: group(retry, 'retry_'),
    on_failure: group(on_failure, 'on_failure_'),
    delivery,
    alerts,
    catch_up: catch_up === defaults.catch_up ? null : catch_up,
    overlap: overlap === defaults.overlap ? null : overlap,
    verification,
    // Elsewhere, somebody else must not run what was stopped here.
    paused: status === 'paused' ? true : null
  })
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

const without = (object: object, defaulted: object = {}) =>
  Object.fromEntries(
    Object.entries(object).filter(([name, value]) => value !== null && !same(value, (defaulted as Record<string, unknown>)[name]))
  )

/** A group without its defaults; null if nothing is left. */
const group = (object: object, prefix: string) => {
  const own = Object.entries(defaults).flatMap(([name, value]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : []))
  const left = without(object, Object.fromEntries(own))
  return Object.keys(left).length > 0 ? left : null
}
