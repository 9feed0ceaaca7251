import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { build } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import describe from './describe.ts'

/** Returns the OpenAPI document for `npm run generate`. Needs no database: the routes contain everything. */
export const openapi = async (): Promise<object> => {
  const config = loadConfig({
    DATABASE_URL: 'postgres://localhost/none',
    ENCRYPTION_KEYS: Buffer.alloc(32).toString('base64'),
    SESSION_SECRET: 'no session is ever signed with this one',
    LOG_LEVEL: 'silent'
  })
  const pool = {
    options: { max: 1 },
    query: () => Promise.reject(new Error('nothing is asked here')),
    connect: () => Promise.reject(new Error('nothing is asked here'))
  } as unknown as pg.Pool
  const app = await build({ config, pool, watchRoutes: describe })
  await app.ready()
  const document = app.swagger()
  await app.close()
  return document
}

const biome = fileURLToPath(new URL('../../node_modules/.bin/biome', import.meta.url))

/** Schemas on one line where they fit, and lines that aren't indented, so that the file is small; not all on one, so that a change is readable. */
if (import.meta.main) {
  const args = ['format', '--indent-width=1', '--line-width=320', '--stdin-file-path=description.json']
  const text = execFileSync(biome, args, { input: JSON.stringify(await openapi()), maxBuffer: 2 ** 26, encoding: 'utf8' })
  process.stdout.write(text.replace(/^ +/gm, ''))
}
