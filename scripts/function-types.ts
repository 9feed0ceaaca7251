/**
 * Generates the types of the SQL functions from the catalog: names, arguments and results. `npm run generate` writes them to
 * src/database/functions.types.ts.
 */
import type pg from 'pg'
import { nullable, nullableArguments, shapes, single } from './function-results.ts'
import { sourcesIn } from './sources.ts'

type Column = { name: string; type: string; not_null?: boolean }
type Function = {
  name: string
  /** Without the prefix `p_`. */
  parameters: (Column & { optional: boolean })[]
  is_set: boolean
  /** Whether it changes nothing. */
  is_stable: boolean
  type: string
  /** Whether the result is a row of a table, whose constraints say what may be null. */
  is_table: boolean
  /** Whether the result is of a composite type. */
  is_type: boolean
  /** Columns of a composite result; null for a scalar or none. */
  columns: Column[] | null
}

/** The functions for callers run with their owner's rights (security definer). The others are parts of them. */
const query = `
  with columns as (
    select c.reltype as type, json_agg(json_build_object('name', a.attname, 'type', a.atttypid::regtype::text, 'not_null', a.attnotnull) order by a.attnum) as columns,
           bool_or(c.relkind in ('r', 'p')) as is_table, bool_and(c.relkind = 'c') as is_type
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'cue'::regnamespace and c.relkind in ('r', 'p', 'c', 'v') group by c.reltype)
  select p.proname as name, p.proretset as is_set, p.provolatile <> 'v' as is_stable, p.prorettype::regtype::text as type, coalesce(c.is_table, false) as is_table, coalesce(c.is_type, false) as is_type,
         coalesce((select json_agg(json_build_object('name', substr(p.proargnames[i], 3), 'type', p.proargtypes[i - 1]::regtype::text,
                                                     'optional', i > p.pronargs - p.pronargdefaults) order by i)
                     from generate_series(1, p.pronargs) i), '[]') as parameters,
         coalesce((select json_agg(json_build_object('name', p.proargnames[i], 'type', p.proallargtypes[i]::regtype::text) order by i)
                     from generate_subscripts(p.proallargtypes, 1) i where p.proargmodes[i] in ('o', 't')), c.columns) as columns
    from pg_proc p left join columns c on c.type = p.prorettype
   where p.pronamespace = 'cue'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype
     and (p.pronargs = 0 or 'p_' = all (select left(a, 2) from unnest(p.proargnames[:p.pronargs]) as a))
   order by p.proname`

const scalars: Record<string, string> = {
  text: 'string',
  uuid: 'string',
  interval: 'string',
  tid: 'string',
  date: 'string',
  boolean: 'boolean',
  integer: 'number',
  bigint: 'number',
  'double precision': 'number',
  'timestamp with time zone': 'Date',
  bytea: 'Buffer',
  void: 'void'
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const pascal = (name: string) => camel(`_${name}`)

/** How a call returns its result: all rows, a single row, a value, or a list of values. */
const kindOf = ({ name, is_set, columns }: Function) => {
  if (columns) return is_set && !single.has(name) && !/\brow\b/.test(nullable[name] ?? '') ? 'rows' : 'row'
  return is_set ? 'values' : 'value'
}

export const functionTypes = async (pool: pg.Pool): Promise<string> => {
  const { rows } = (await pool.query(query)) as { rows: Function[] }
  const words = new Set(sourcesIn('src').match(/\w+/g)) // the others are called only by functions
  const functions = rows.filter(({ name }) => words.has(camel(name)))
  const enums = new Set(Object.values(shapes).flatMap(shape => shape.match(/\b[A-Z][a-z]+[A-Z]\w+/g) ?? []))
  const scalarOf = (type: string, element: string): string => {
    if (type.endsWith('[]')) return `(${scalarOf(type.slice(0, -2), element)} | ${element})[]`.replace(' | never', '')
    if (type === 'jsonb' || type === 'json') return 'unknown'
    const name = /^cue\.(\w+)$/.exec(type)?.[1]
    if (name) enums.add(pascal(name))
    const scalar = name ? pascal(name) : scalars[type]
    if (!scalar) throw new Error(`${type} has no type in TypeScript: add it to scripts/function-types.ts`)
    return scalar
  }
  const tidy = (type: string) => type.replace(/^\((\w+)\)\[\]$/, '$1[]')

  const argument = (of: string, { name, type, optional }: Function['parameters'][0]) => {
    const isNullable = nullableArguments[of]?.split(' ').includes(name) ?? false
    const scalar = type === 'jsonb' ? 'object | string' : scalarOf(type, isNullable ? 'null' : 'never')
    return `${name}${optional ? '?' : ''}: ${tidy(scalar)}${optional || (isNullable && !type.endsWith('[]')) ? ' | null' : ''}`
  }
  const existing = new Set<string>()
  const nullsOf = ({ name, type, columns }: Function) => {
    const names = new Set((nullable[name] ?? nullable[type])?.split(' '))
    for (const column of names) if (!['row', 'value', ...(columns ?? []).map(c => c.name)].includes(column)) fail(name, column)
    existing.add(name).add(type)
    return names
  }
  const fail = (name: string, column: string) => {
    throw new Error(`scripts/function-results.ts names ${column} of ${name}, which cue.${name} does not return`)
  }
  const results = new Map<string, string>()
  const resultOf = (f: Function): string => {
    const nulls = nullsOf(f)
    const kind = kindOf(f)
    if (!f.columns) {
      const value = `${shapes[f.name] ?? tidy(scalarOf(f.type, 'never'))}${nulls.has('value') ? ' | null' : ''}`
      return kind === 'values' ? `(${value})[]`.replace(/^\((\w+)\)/, '$1') : value
    }
    // Rows of a table and composite types get one type shared by all functions that return them. Which columns of a view may be null
    // depends on the function.
    const named = f.is_table || f.is_type ? /^cue\.(\w+)$/.exec(f.type)?.[1] : undefined
    const row = named ? `${pascal(named)}${f.is_type ? '' : 'Row'}` : `${pascal(f.name)}Row`
    const columns = f.columns.map(({ name, type, not_null }) => {
      const scalar = shapes[`${f.name}.${name}`] ?? shapes[name] ?? tidy(scalarOf(type, 'never'))
      const isNullable = f.is_table ? !not_null : nulls.has(name)
      return `  ${name}: ${scalar}${isNullable ? ' | null' : ''}\n`
    })
    results.set(row, `export type ${row} = {\n${columns.join('')}}\n`)
    return kind === 'rows' ? `${row}[]` : `${row}${nulls.has('row') ? ' | undefined' : ''}`
  }
  const members = functions.map(f => {
    const args = f.parameters.filter(({ name }) => name !== 'now').map(parameter => argument(f.name, parameter))
    return `  ${camel(f.name)}: (args: { ${args.join('; ')} }) => Promise<${resultOf(f)}>\n`.replace('{  }', 'object')
  })
  for (const { name, parameters } of functions) {
    existing.add(name)
    const unknown = nullableArguments[name]?.split(' ').find(argument => !parameters.some(parameter => parameter.name === argument))
    if (unknown) throw new Error(`scripts/function-results.ts names ${unknown}, which is not an argument of cue.${name}`)
  }
  for (const name of [...Object.keys(nullable), ...Object.keys(nullableArguments), ...single]) {
    if (!existing.has(name)) throw new Error(`scripts/function-results.ts names cue.${name}, which does not exist`)
  }
  const entries = functions.map(
    f => `  ${f.name}: ['${kindOf(f)}', '${f.parameters.map(({ name }) => name).join(' ')}'${f.is_stable ? ", 'stable'" : ''}]`
  )
  return `/** The SQL functions, as the catalog has them. Made by \`npm run generate\`; do not edit. */
import type { ${[...enums].sort().join(', ')} } from '../db.types.ts'

/** How each function returns its result, its parameters without the prefix p_, and whether it changes nothing. */
export const functions = {
${entries.join(',\n')}
} as const

${[...results.values()].join('\n')}
export type Functions = {
${members.join('')}}
`
}
