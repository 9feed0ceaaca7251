/** Reads files of declared cues. */
import type { DeclaredCue } from '../client/index.ts'
import { UsageError } from './exit-codes.ts'
import type { Io } from './io.ts'
import { isObject, parseExactly, readSource } from './json.ts'
import { readYaml } from './yaml.ts'

/** The cues of files by their sets. @throws UsageError naming the file and what is wrong */
export const readDeclared = async (
  files: readonly string[],
  defaultSet: string | undefined,
  io: Pick<Io, 'stdin' | 'env'>
): Promise<Map<string, DeclaredCue[]>> => {
  if (files.filter(file => file === '-').length > 1) throw new UsageError('only one --file can be standard input')
  const sets = new Map<string, DeclaredCue[]>()
  for (const file of files) {
    const source = await readSource(file, '--file: ', io)
    const documents = readYaml(source, file, { text: text => expand(text, io.env, file), number: parseExactly })
    for (const [i, document] of documents.entries()) {
      if (document === null) continue
      const where = `${file}, document ${i + 1}`
      if (!isObject(document)) throw new UsageError(`${where}: must be {set, cues: [...]} or a cue`)
      const isList = 'cues' in document
      const { set = defaultSet, cues = [document], ...unknown } = isList ? document : { cues: [document] }
      if (Object.keys(unknown).length > 0) throw new UsageError(`${where}: unknown field ${Object.keys(unknown)[0]} beside cues`)
      if (!Array.isArray(cues)) throw new UsageError(`${where}: cues must be a list`)
      if (typeof set !== 'string' || set === '') throw new UsageError(`${where}: names no set; use --set NAME`)
      sets.set(set, [...(sets.get(set) ?? []), ...(cues as DeclaredCue[])])
    }
  }
  if (sets.size === 0) throw new UsageError(`${files.join(', ')}: no document`)
  return sets
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
