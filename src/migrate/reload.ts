/** Loads functions, views and roles in one transaction, so that nobody sees any of them missing. */
import type pg from 'pg'
import { type File, type Release, type Statement, statementsOf } from './sql-files.ts'

type Kind = 'function' | 'view'
type Grant = { kind: Kind; name: string; grantee: string; privilege: string; grantable: boolean }

/** `create or replace` cannot change result types, columns or parameter names. */
const isOtherShape = (error: unknown) => /^(42P13|42P16)$/.test((error as pg.DatabaseError).code ?? '')

/**
 * Loads all sources; must be called within a transaction. Objects whose shape has changed are dropped and created again, with the grants
 * made by others. Functions and views that were removed from the files are kept for one more release, whose replicas may still use them.
 * @throws {Error} naming an object that is not ours but depends on one that must be dropped
 */
export const loadSources = async (client: pg.Client, sources: File[], release: Release, ourRoles: string[]) => {
  const before = await definitions(client)
  const grants = await readGrants(client)
  const dropped = new Set<string>()
  // Functions may reference each other in any order; their bodies are checked once all exist.
  await client.query('set local check_function_bodies = off')
  for (const source of sources.filter(definesSomething)) {
    for (const statement of statementsOf(source)) await load(client, source, statement, before, dropped)
  }
  await client.query('set local check_function_bodies = on')
  const loaded = await definitions(client)
  const unchanged = [...loaded].filter(([oid, { version }]) => before.get(oid)?.version === version).map(([oid]) => oid)
  await client.query(
    `select case l.lanname when 'sql' then fmgr_sql_validator(p.oid) when 'plpgsql' then plpgsql_validator(p.oid) end
       from pg_proc p join pg_language l on l.oid = p.prolang
      where p.pronamespace = 'cue'::regnamespace and p.oid <> all ($1)`,
    [unchanged]
  )
  await dropFormer(client, loaded, unchanged, release)
  for (const source of sources.filter(source => !definesSomething(source))) await runFile(client, source)
  const present = new Set([...loaded.values()].map(({ name }) => name))
  for (const { kind, name, grantee, privilege, grantable } of grants) {
    if (!dropped.has(name) || !present.has(name) || ourRoles.includes(grantee)) continue
    await client.query(
      `grant ${privilege} on ${kind === 'view' ? '' : 'function '}${name} to ${grantee} ${grantable ? 'with grant option' : ''}`
    )
  }
}

/** Settings and grants are loaded last, because they apply to functions and views that exist. */
const definesSomething = ({ name }: File) => name !== 'settings.sql' && name !== 'roles.sql'

type Definition = { kind: Kind; name: string; signature: string; version: string; former: number | null }

const formerly = 'Not part of the schema since release'

/** All our functions and views by oid. `version` changes with each `create or replace`. */
const definitions = async (client: pg.Client): Promise<Map<number, Definition>> => {
  const { rows } = await client.query(
    `select o.*, substring(comment from $1)::int as former from (
       select oid::int8, case prokind when 'p' then 'procedure' else 'function' end as kind, format('cue.%I', proname) as name,
              oid::regprocedure::text as signature, xmin::text as version, obj_description(oid, 'pg_proc') as comment
         from pg_proc
        where pronamespace = 'cue'::regnamespace
          and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = pg_proc.oid and d.deptype = 'e')
       union all
       select c.oid::int8, 'view', format('cue.%I', c.relname), c.oid::regclass::text, r.xmin::text, obj_description(c.oid, 'pg_class')
         from pg_class c join pg_rewrite r on r.ev_class = c.oid
        where c.relnamespace = 'cue'::regnamespace and c.relkind = 'v') o`,
    [`^${formerly} (\\d+)`]
  )
  return new Map(rows.map(row => [Number(row.oid), row]))
}

const readGrants = async (client: pg.Client): Promise<Grant[]> => {
  const { rows } = await client.query(
    `select o.kind, o.name, a.grantee::regrole::text as grantee, a.privilege_type as privilege, a.is_grantable as grantable
       from (select 'function' as kind, format('cue.%I', proname) as name, proacl as acl from pg_proc where pronamespace = 'cue'::regnamespace
             union all
             select 'view', format('cue.%I', relname), relacl from pg_class
              where relnamespace = 'cue'::regnamespace and relkind = 'v') o, aclexplode(o.acl) a
      where a.grantee <> 0`
  )
  return rows
}

const load = async (client: pg.Client, source: File, statement: Statement, before: Map<number, Definition>, dropped: Set<string>) => {
  const [, kind, name = ''] = /^create or replace (function|procedure|view) (cue\.\w+)/.exec(statement.text) ?? []
  const exists = [...before.values()].some(former => former.name === name)
  if (!exists) return run(client, source, statement)
  await client.query('savepoint statement')
  try {
    await run(client, source, statement)
  } catch (error) {
    if (!isOtherShape(error)) throw error
    await client.query('rollback to statement')
    for (const former of (await definitions(client)).values()) if (former.name === name) await drop(client, former, dropped)
    await run(client, source, statement)
  }
  await client.query('release statement')
  if (kind === 'view') return
  // An overload would make calls by parameter names ambiguous.
  const now = await namesakes(client, name)
  for (const { oid, version } of now) {
    const former = before.get(oid)
    if (now.length > 1 && former?.version === version) await drop(client, former, dropped)
  }
}

const namesakes = async (client: pg.Client, name: string): Promise<{ oid: number; version: string }[]> => {
  const { rows } = await client.query(
    "select oid::int8, xmin::text as version from pg_proc where pronamespace = 'cue'::regnamespace and format('cue.%I', proname) = $1",
    [name]
  )
  return rows.map(({ oid, version }) => ({ oid: Number(oid), version }))
}

/**
 * Drops an object together with views and functions that use it. They are created again, because each file uses only what is loaded before
 * it.
 */
const drop = async (client: pg.Client, { kind, signature, name }: Definition, dropped: Set<string>) => {
  const { rows } = await client.query(
    `with recursive users (classid, objid) as (
       select case $2 when 'view' then 'pg_class'::regclass else 'pg_proc'::regclass end::oid,
              case $2 when 'view' then to_regclass($1)::oid else to_regprocedure($1)::oid end
       union
       select f.* from users u cross join lateral (
         select d.classid, d.objid from pg_depend d where d.refclassid = u.classid and d.refobjid = u.objid and d.deptype <> 'e'
         union all
         select 'pg_class'::regclass, r.ev_class from pg_rewrite r where u.classid = 'pg_rewrite'::regclass and r.oid = u.objid) f)
     select pg_describe_object(u.classid, u.objid, 0) as description, 'cue.' || quote_ident(coalesce(p.proname, c.relname)) as ours
       from users u
       left join pg_proc p on u.classid = 'pg_proc'::regclass and p.oid = u.objid and p.pronamespace = 'cue'::regnamespace
       left join pg_class c on u.classid = 'pg_class'::regclass and c.oid = u.objid and c.relnamespace = 'cue'::regnamespace and c.relkind = 'v'
      where u.classid not in ('pg_type'::regclass, 'pg_rewrite'::regclass)`,
    [signature, kind]
  )
  const foreign = rows.filter(row => !row.ours).map(row => row.description)
  if (foreign.length > 0)
    throw new Error(`${name} has changed, but ${foreign.join(', ')} depends on it: drop that, migrate, and create it again`)
  for (const { ours } of rows) dropped.add(ours)
  await client.query(`drop ${kind} ${signature} cascade`)
}

/** Handles objects no longer in the files: marked by the first release without them, dropped by the next. */
const dropFormer = async (client: pg.Client, loaded: Map<number, Definition>, unchanged: number[], release: Release) => {
  for (const oid of unchanged) {
    const definition = loaded.get(oid)!
    const { kind, signature, former } = definition
    if (former === null)
      await client.query(`comment on ${kind} ${signature} is '${formerly} ${release.number}; the release after it drops this.'`)
    else if (former < release.number && (await definitions(client)).has(oid)) await drop(client, definition, new Set())
  }
}

const runFile = (client: pg.Client, file: File) => run(client, file, { text: file.text, line: 1 })

/** Runs a part of a file. An error names file and line. */
export const run = async (client: pg.Client, file: File, { text, line }: Statement) => {
  try {
    await client.query(text)
  } catch (error) {
    const { message, position } = error as pg.DatabaseError
    const place = position ? `:${line + text.slice(0, Number(position)).split('\n').length - 1}` : ''
    throw Object.assign(error as Error, { message: `${file.name}${place}: ${message}` })
  }
}
