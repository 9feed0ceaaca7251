/** Values that sql/ owns and the service uses: the constants of sql/constants.sql and the labels of enums. Written to src/catalog.ts. */
import type pg from 'pg'

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

export const catalog = async (pool: Pick<pg.Pool, 'query'>): Promise<string> => {
  const constants = (await readConstants(pool)).map(
    ([name, value]) => `  ${camel(name)}: ${typeof value === 'string' ? `'${value}'` : value}`
  )
  const { rows: enums } = await pool.query(
    `select t.typname as name, array_agg(e.enumlabel::text order by e.enumsortorder) as labels
       from pg_type t join pg_enum e on e.enumtypid = t.oid where t.typnamespace = 'cue'::regnamespace group by t.typname order by t.typname`
  )
  const labels = enums.map(({ name, labels }) => `  ${camel(name)}: [${labels.map((label: string) => `'${label}'`).join(', ')}]`)
  return `/** Values that sql/ owns. Made by \`npm run generate\`; do not edit. */

/** The constants of sql/constants.sql; durations in milliseconds. */
export const constants = {
${constants.join(',\n')}
}

/** The labels of each enum, in order. */
export const enums = {
${labels.join(',\n')}
} as const
`
}

/** Names and values: functions of `cue` without arguments that return a constant interval, in milliseconds, a number or text. */
const readConstants = async (pool: Pick<pg.Pool, 'query'>): Promise<[string, number | string][]> => {
  const { rows } = await pool.query(
    `select proname as name, prorettype = 'interval'::regtype as is_interval from pg_proc
      where pronamespace = 'cue'::regnamespace and pronargs = 0 and provolatile = 'i' and prorettype in ('interval'::regtype, 'int'::regtype, 'text'::regtype)
      order by proname`
  )
  const values = rows.map(({ name, is_interval }) =>
    is_interval ? `(extract(epoch from cue.${name}()) * 1000)::int as "${name}_ms"` : `cue.${name}()`
  )
  const { rows: found } = await pool.query(`select ${values.join(', ')}`)
  return Object.entries(found[0])
}
