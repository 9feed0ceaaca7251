/** The files in sql/: their content, and the number of the release they form. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Queue } from 'pg-boss'
import { queues as ourQueues } from '../jobs/boss.ts'

export type File = { id: number; name: string; text: string; checksum: string }
export type Queues = { name: string; options?: Omit<Queue, 'name'> }[]

/** The number grows with every change in sql/, so that releases can be ordered. */
export type Release = { number: number; checksum: string }

const sqlRoot = fileURLToPath(new URL('../../sql', import.meta.url))
const pgBossSchema: number = createRequire(import.meta.url)('pg-boss/package.json').pgboss.schema

export const hash = (text: string) => createHash('sha256').update(text).digest('hex')

const filesIn = (
  dir: string,
  names = readdirSync(dir)
    .filter(name => name.endsWith('.sql'))
    .sort()
): File[] =>
  names.map(name => {
    const text = readFileSync(join(dir, name), 'utf8')
    return { id: Number.parseInt(name, 10), name, text, checksum: hash(text) }
  })

/**
 * Returns migrations, statements for pg-boss's tables, the files to reload in loading order, and the release, whose checksum is that of the
 * actual files.
 */
export const readSources = (sqlDir = sqlRoot, queues: Queues = ourQueues) => {
  const migrations = filesIn(join(sqlDir, 'migrations'))
  const functions = filesIn(join(sqlDir, 'functions'))
  // The previous release, from which a test upgrades, may lack a file.
  const present = (...names: string[]) =>
    filesIn(
      sqlDir,
      names.filter(name => existsSync(join(sqlDir, name)))
    )
  const forQueues = present('queues.sql')
  const sources = [...present('constants.sql'), ...functions, ...present('views.sql', 'view_functions.sql', 'settings.sql', 'roles.sql')]
  const content = [...migrations, ...forQueues, ...sources].map(({ name, checksum }) => [name, checksum])
  const release = { number: readNumber(sqlDir), checksum: hash(JSON.stringify([pgBossSchema, queues, content])) }
  return { migrations, forQueues, sources, release }
}

/** After a merge, the file may contain the numbers of both branches. */
const readNumber = (sqlDir: string): number => {
  const numbers = readFileSync(join(sqlDir, 'release.json'), 'utf8').matchAll(/"number": (\d+)/g)
  return Math.max(0, ...[...numbers].map(([, number]) => Number(number)))
}

/** Returns what sql/release.json should contain: the next number if anything has changed since it was written. */
export const releaseFile = (sqlDir = sqlRoot): string => {
  const { release } = readSources(sqlDir)
  const textOf = (number: number) => `${JSON.stringify({ number, checksum: release.checksum }, null, 2)}\n`
  const file = join(sqlDir, 'release.json')
  const unchanged = textOf(release.number)
  return existsSync(file) && readFileSync(file, 'utf8') === unchanged ? unchanged : textOf(release.number + 1)
}

export type Statement = { text: string; line: number }

/** Splits a file into statements with their first line. Semicolons in quotes, function bodies and comments are skipped. */
export const statementsOf = (file: File): Statement[] => {
  const statements: Statement[] = []
  let from = 0
  const add = (to: number) => {
    const blank = /^(\s|--.*)*/.exec(file.text.slice(from, to))![0].length
    const text = file.text.slice(from + blank, to)
    if (text) statements.push({ text, line: file.text.slice(0, from + blank).split('\n').length })
    from = to
  }
  for (const { 0: token, index } of file.text.matchAll(/--.*|'[^']*'|"[^"]*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g)) if (token === ';') add(index + 1)
  add(file.text.length)
  return statements
}

/** The `comment on` statements for what a migration creates: ` --- text` beside a type, sequence, table or column, or on lines above it. */
export const commentsOf = (text: string): string => {
  const comments: string[] = []
  let table = ''
  let above: string[] = []
  for (const line of text.split('\n')) {
    const [, code = '', beside] = /^(.*?) *(?:--- (.*))?$/.exec(line)!
    const comment = beside === undefined ? above : [...above, beside]
    const [, kind, name] = /^create (?:unlogged )?(table|type|sequence) (cue\.\w+)/.exec(code) ?? []
    if (kind === 'table') table = name!
    const target = kind ? `${kind} ${name}` : `column ${table}.${/^ {2}(\w+)/.exec(code)?.[1]}`
    if (code && comment.length > 0) comments.push(`comment on ${target} is ${pg.escapeLiteral(comment.join(' '))};\n`)
    above = code ? [] : comment
  }
  return comments.join('')
}
