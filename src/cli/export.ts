/** `pgcue export`: writes cues as a file for `pgcue apply`. */
import type { Client, Cue, CueFilter, Gate } from '../client/index.ts'
import { defaults } from '../cues/columns.ts'
import { escapeVariables } from './apply.ts'
import { command, fromApi } from './command.ts'
import { exitCodes } from './exit-codes.ts'
import { fields } from './fields.generated.ts'
import { confirms, type Io, parseExactly } from './io.ts'
import { printable } from './printable.ts'
import { writeYaml } from './yaml.ts'

export const exportCues = command({
  options: {
    ...fromApi('listCues', { set: 'set', tag: 'tag' }),
    'add-keys': { type: 'boolean', help: 'first give keys, made from their names, to cues without one' },
    yes: { type: 'boolean', help: 'do not ask for confirmation of --add-keys' }
  },
  notes: 'Header values are masked. Applied to the same cues, a mask keeps the stored value.',
  run: async context => {
    const { options, out, io } = context
    const { client, body } = await context.ready<CueFilter>()
    const all: Cue[] = []
    for await (const cue of client.cues.list({ ...body, limit: 100, count_to: 0 })) all.push(cue)
    if (options['add-keys'] && !(await addKeys(client, all, options.yes === true, io))) return exitCodes.refused
    const keyed = all.filter(({ key }) => key !== null).toSorted((a, b) => (a.key! < b.key! ? -1 : 1))
    if (keyed.length < all.length) io.stderr.write(`pgcue: left out ${all.length - keyed.length} cues without a key; see --add-keys\n`)
    const sets = [...new Set(keyed.map(cue => cue.managed_by))]
    const used = new Map(keyed.map(cue => [cue.gate?.split('#')[0], cue.managed_by]))
    const gates: Gate[] = []
    if (used.size > 1 || !used.has(undefined)) for await (const gate of client.gates.list({ limit: 100 })) gates.push(gate)
    const declarations = sets.map(set => {
      const ofSet = gates.filter(({ key }) => used.has(key) && used.get(key) === set).map(declaredGate)
      return {
        ...(set !== null && { set }),
        ...(ofSet.length > 0 && { gates: ofSet }),
        cues: keyed.filter(cue => cue.managed_by === set).map(declared)
      }
    })
    const files = parseExactly(escapeVariables(JSON.stringify(declarations))) as typeof declarations
    out.show(files, () => void io.stdout.write(files.map(file => writeYaml(JSON.stringify(file))).join('---\n')))
  }
})

/** Gives keys to cues without one, after asking; returns false if refused. */
const addKeys = async ({ cues }: Client, all: Cue[], isConfirmed: boolean, io: Io): Promise<boolean> => {
  const unkeyed = all.filter(({ key }) => key === null)
  // The filter may hide cues whose keys are in use.
  const taken = (key: string) => cues.list({ key, limit: 1 }).then(({ total }) => total > 0)
  const keys = new Set<string>()
  for (const { name } of unkeyed) {
    const base = keyOf(name)
    let key = base
    for (let n = 2; keys.has(key) || (await taken(key)); n++) key = `${base}-${n}`
    keys.add(key)
  }
  if (unkeyed.length === 0) return true
  const changes = unkeyed.map((cue, i) => ({ cue, key: [...keys][i]! }))
  for (const { cue, key } of changes) io.stderr.write(`${cue.id}  ${printable(cue.name)}  ->  ${key}\n`)
  if (!isConfirmed && !(await confirms(io, `Give these keys to ${unkeyed.length} cues?`))) return false
  for (const { cue, key } of changes) Object.assign(cue, await cues.update(cue.id, { key }, { ifVersion: cue.version }))
  return true
}

/** A name as a key: small letters and digits, with dashes between words. */
const keyOf = (name: string): string => {
  const words = name.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '')
  return (
    words
      .replace(/[^a-z0-9._:/]+/g, '-')
      .replace(/^[-.]+|[-.]+$/g, '')
      .slice(0, 200) || 'cue'
  )
}

/** The members that requests have. */
const members = new Set(Object.keys(fields.createCue!).map(path => path.split('.')[0]!))

/** The fields of a cue that differ from their defaults. */
const declared = (cue: Cue) => {
  const { key, name, schedule, callback, payload, retry, on_failure, status } = cue
  const settings = Object.entries(cue).filter(([member]) => members.has(member))
  const { type: _, ...when } = schedule ?? { type: null }
  return without(
    {
      ...{ key, name, ...Object.fromEntries(settings) },
      schedule: schedule && without(when, { timezone: defaults.timezone }),
      callback: group(callback, 'callback_'),
      payload: JSON.stringify(payload) === defaults.payload ? null : payload,
      retry: group(retry, 'retry_'),
      on_failure: group(on_failure, 'on_failure_'),
      // Elsewhere, somebody else must not run what was stopped here.
      paused: status === 'paused' ? true : null
    },
    { ...defaults, transport: 'webhook' }
  )
}

/** The settings of a gate that differ from their defaults. */
const declaredGate = ({ key, parallel, rate, per, order, on_failure, breaker, budget, max_wait, description }: Gate) => ({
  key,
  ...without(
    { parallel, rate, per, order, on_failure, breaker, budget: budget && without(budget), max_wait, description },
    { order: false, on_failure: 'continue', max_wait: '24h' }
  )
})

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

const without = (object: object, defaulted: object = {}) =>
  Object.fromEntries(
    Object.entries(object).filter(([name, value]) => value !== null && !same(value, (defaulted as Record<string, unknown>)[name]))
  )

/** A group without its defaults; null if nothing is left. */
const group = (object: object, prefix: string) => {
  const entries = Object.entries(defaults).flatMap(([name, value]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : []))
  const settings = without(object, Object.fromEntries(entries))
  return Object.keys(settings).length > 0 ? settings : null
}
