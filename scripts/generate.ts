import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Kysely, PostgresDialect } from 'kysely'
import { generate as generateTypes, PostgresDialect as TypesOfPostgres } from 'kysely-codegen'
import type pg from 'pg'
import { createPool } from '../src/database/pool.ts'
import { startEmbedded } from '../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../src/migrate/migrate.ts'
import { releaseFile } from '../src/migrate/sql-files.ts'
import { catalog } from './catalog.ts'
import { cliFields } from './cli-fields.ts'
import { cueColumns } from './cue-columns.ts'
import { dumpSchema } from './dump-schema.ts'
import { functionTypes } from './function-types.ts'
import { postsFile } from './posts.ts'
import { pythonClient } from './python-client.ts'

/** Returns the generated files by path, from a migrated database of PostgreSQL 18. */
export const generate = async (databaseUrl: string): Promise<Record<string, string>> => {
  const pool = createPool({ databaseUrl, pgPoolMax: 4 })
  try {
    return {
      'sql/release.json': releaseFile(),
      'sql/schema.sql': await dumpSchema(pool),
      'src/db.types.ts': await rowTypes(pool),
      'src/catalog.ts': await catalog(pool),
      'src/database/functions.types.ts': await functionTypes(pool),
      'src/cues/columns.ts': await cueColumns(pool),
      'src/blog/posts.json': postsFile()
    }
  } finally {
    await pool.end()
  }
}

const onFreshDatabase = async <T>(work: (url: string) => Promise<T>): Promise<T> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'pgcue-generate-'))
  chmodSync(dataDir, 0o755) // if this runs as root, the server runs as another system user, who needs access
  const { url, stop } = await startEmbedded({ dataDir, durable: false })
  try {
    await migrate({ connectionString: url })
    return await work(url)
  } finally {
    await stop()
    rmSync(dataDir, { recursive: true })
  }
}

/** Row types of tables and views in `cue`, under their unqualified names; values as parsed by src/database/pool.ts. */
const rowTypes = (pool: pg.Pool) =>
  generateTypes({
    db: new Kysely({ dialect: new PostgresDialect({ pool }) }),
    dialect: new TypesOfPostgres({ defaultSchemas: ['cue'], dateParser: 'string' }),
    defaultSchemas: ['cue'],
    includePattern: 'cue.*',
    typeMapping: { int8: 'number' },
    outFile: null
  })

/** From the routes, in a process of its own: they import some of the other files, as they are by then. */
export const openapiFiles = (): Record<string, string> => {
  const script = fileURLToPath(new URL('openapi/main.ts', import.meta.url))
  const document = execFileSync(process.execPath, [script], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  const parsed = JSON.parse(document)
  return { 'src/openapi.json': document, 'src/python/pgcue/api.py': pythonClient(parsed), 'src/cli/fields.generated.ts': cliFields(parsed) }
}

const isCheck = process.argv.includes('--check')

const write = (files: Record<string, string>) => {
  for (const [name, content] of Object.entries(files)) {
    const file = fileURLToPath(new URL(`../${name}`, import.meta.url))
    if (existsSync(file) && readFileSync(file, 'utf8') === content) continue
    if (isCheck) {
      console.error(`${name} is out of date: run \`npm run generate\``)
      process.exitCode = 1
    } else {
      writeFileSync(file, content)
      console.log(`Wrote ${name}`)
    }
  }
}

if (import.meta.main) {
  write(await onFreshDatabase(generate))
  write(openapiFiles())
}
