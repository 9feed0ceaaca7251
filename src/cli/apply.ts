/** `pgcue apply`: makes cues as declared in files. */
import { randomUUID } from 'node:crypto'
import type { Applied, DeclaredCue, DeclaredGate } from '../client/index.ts'
import { command } from './command.ts'
import { exitCodes, UsageError } from './exit-codes.ts'
import { type Io, isObject, parseExactly, readSource } from './io.ts'
import type { Output } from './output.ts'
import { readYaml } from './yaml.ts'

const options = {
  file: { type: 'string', short: 'f', multiple: true, value: 'FILE', help: 'YAML or JSON file of cues, or - for standard input' },
  set: { type: 'string', value: 'NAME', help: 'the set of documents that do not name theirs' },
  prune: { type: 'boolean', help: 'delete cues of the set that are not in the files' },
  'take-over': { type: 'boolean', help: 'also change cues of other sets' },
  'dry-run': { type: 'boolean', help: 'only show what would be done' },
  example: { type: 'boolean', help: 'print an annotated file to start from, and do nothing' },
  'exit-code': { type: 'boolean', help: `exit with ${exitCodes.differs} if anything differs` }
} as const

export const apply = command({
  options,
  names: { set: '--set' },
  notes: `A document is {set, cues: [...], gates: [...]} or a single cue, with the fields of the API and a key. In strings, \${NAME} is replaced by the environment
variable; $\${NAME} stands for \${NAME} itself.

Examples
  pgcue apply --example > cues.yaml
  pgcue apply -f cues.yaml --set billing --dry-run
  pgcue apply -f cues.yaml --prune --exit-code`,
  run: async ({ options, out, io, connect }) => {
    if (options.example) return io.stdout.write((await import('./example.ts')).example)
    if (!options.file) throw new UsageError('missing option --file')
    const { sets: declared, gates } = await readDeclared(options.file, options.set, io)
    const sets = inOrder(declared)
    const { cues: client } = connect()
    const dry_run = options['dry-run'] ?? false
    const send = (set: string, cues: DeclaredCue[], dry_run: boolean) => {
      const body = { set, cues, prune: options.prune ?? false, take_over: options['take-over'] ?? false, dry_run }
      // With each set, as the cues of any may name them.
      return client.apply(gates.length > 0 ? { ...body, gates } : body, dry_run ? {} : { idempotencyKey: randomUUID() })
    }
    // Nothing is done if a later set would be refused.
    const tried = sets.size > 1 || dry_run ? await tryInOrder(sets, send) : []
    const results: Applied[] = dry_run ? tried : []
    if (!dry_run) for (const [set, cues] of sets) results.push(await send(set, cues, false))
    out.show(results.length === 1 ? results[0] : results, () => results.map(result => print(result, out)))
    const differs = results.some(
      ({ created, updated, pruned, gates: { created: added, updated: changed } = none }) =>
        created.length + updated.length + pruned.length + added.length + changed.length > 0
    )
    return differs && options['exit-code'] ? exitCodes.differs : exitCodes.ok
  }
})

type Sets = Map<string, DeclaredCue[]>

/** Cues are not checked yet. */
const parentKeys = (cue: DeclaredCue | null): unknown[] => (Array.isArray(cue?.after?.cues) ? cue.after.cues : [])

/** Each set behind those whose cues its own follow, as far as there is such an order. */
const inOrder = (sets: Sets): Sets => {
  const setOf = new Map([...sets].flatMap(([set, cues]) => cues.map((cue: DeclaredCue | null) => [cue?.key as unknown, set])))
  const seen = new Set<string>()
  const ordered: Sets = new Map()
  const add = (set: string) => {
    if (seen.has(set)) return
    seen.add(set)
    const cues = sets.get(set)!
    for (const parent of cues.flatMap(parentKeys)) if (setOf.has(parent)) add(setOf.get(parent)!)
    ordered.set(set, cues)
  }
  for (const set of sets.keys()) add(set)
  return ordered
}

/** Applies each set without doing anything, with the cues of earlier sets that its own follow and that don't exist yet. */
const tryInOrder = async (sets: Sets, send: (set: string, cues: DeclaredCue[], dry_run: true) => Promise<Applied>): Promise<Applied[]> => {
  const results: Applied[] = []
  const missing = new Map<string, DeclaredCue>()
  for (const [set, cues] of sets) {
    const parents = parentsAmong(missing, cues)
    const result = await send(set, [...cues, ...parents], true)
    const created = result.created.filter(key => !parents.some(cue => cue.key === key))
    for (const cue of cues) if (created.includes(cue.key)) missing.set(cue.key, cue)
    results.push({ ...result, created })
  }
  return results
}

/** Those of `missing` that cues follow, also through others. */
const parentsAmong = (missing: Map<string, DeclaredCue>, cues: DeclaredCue[]): DeclaredCue[] => {
  const parents = new Set<DeclaredCue>()
  const add = (cue: DeclaredCue) => {
    for (const key of parentKeys(cue)) {
      const parent = missing.get(key as string)
      if (!parent || parents.has(parent)) continue
      parents.add(parent)
      add(parent)
    }
  }
  cues.forEach(add)
  return [...parents]
}

const none = { created: [], updated: [], unchanged: [] } satisfies Applied['gates']

const print = ({ set, dry_run, created, updated, unchanged, pruned, gates = none }: Applied, out: Output) => {
  for (const key of gates.created) out.line(`+ gate ${key}`, 'green')
  for (const key of gates.updated) out.line(`~ gate ${key}`, 'yellow')
  for (const key of created) out.line(`+ ${key}`, 'green')
  for (const { key, changes } of updated) {
    out.line(`~ ${key}`, 'yellow')
    for (const [field, { from, to }] of Object.entries(changes)) {
      out.line(`    ${field}`)
      out.line(`    - ${JSON.stringify(from)}`, 'red')
      out.line(`    + ${JSON.stringify(to)}`, 'green')
    }
  }
  for (const key of pruned) out.line(`- ${key}`, 'red')
  const counts = Object.entries({ created, updated, unchanged, pruned }).map(([what, cues]) => `${cues.length} ${what}`)
  out.line(`${set}: ${counts.join(', ')}${dry_run ? ' (dry run: nothing was changed)' : ''}`)
}

/** The cues of files by their sets, and the gates of all. @throws UsageError naming the file and what is wrong */
const readDeclared = async (
  files: readonly string[],
  defaultSet: string | undefined,
  io: Pick<Io, 'stdin' | 'env'>
): Promise<{ sets: Sets; gates: DeclaredGate[] }> => {
  if (files.filter(file => file === '-').length > 1) throw new UsageError('only one --file can be standard input')
  const sets: Sets = new Map()
  const gates: DeclaredGate[] = []
  for (const file of files) {
    const source = await readSource(file, '--file: ', io)
    const documents = readYaml(source, file, { text: text => expand(text, io.env, file), number: parseExactly })
    for (const [i, document] of documents.entries()) {
      if (document === null) continue
      const where = `${file}, document ${i + 1}`
      if (!isObject(document)) throw new UsageError(`${where}: must be {set, cues: [...]} or a cue`)
      const isList = 'cues' in document || 'gates' in document
      const { set = defaultSet, cues = [], gates: listed = [], ...unknown } = isList ? document : { cues: [document] }
      if (Object.keys(unknown).length > 0) throw new UsageError(`${where}: unknown field ${Object.keys(unknown)[0]} beside cues`)
      if (!Array.isArray(cues)) throw new UsageError(`${where}: cues must be a list`)
      if (!Array.isArray(listed)) throw new UsageError(`${where}: gates must be a list`)
      gates.push(...(listed as DeclaredGate[]))
      if (typeof set !== 'string' || set === '') throw new UsageError(`${where}: names no set; use --set NAME`)
      sets.set(set, [...(sets.get(set) ?? []), ...(cues as DeclaredCue[])])
    }
  }
  if (sets.size === 0) throw new UsageError(`${files.join(', ')}: no document`)
  return { sets, gates }
}

const variable = /\$(\$?)\{([A-Za-z_]\w*)\}/g

const expand = (text: string, env: Io['env'], file: string): string =>
  text.replace(variable, (whole, escaped: string, name: string) => {
    if (escaped) return whole.slice(1)
    const value = env[name]
    if (value === undefined) throw new UsageError(`${file}: environment variable ${name} is not set`)
    return value
  })

/** The opposite of replacing variables. */
export const escapeVariables = (text: string): string => text.replace(variable, '$$$&')
