import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type pg from 'pg'
import type { Test } from 'tap'
import { type Config, loadConfig } from '../src/config.ts'
import { createPool } from '../src/database/pool.ts'
import { connectAdmin, prepareTemplate } from './template.ts'

export type TestDatabase = { url: string; name: string; pool: pg.Pool; config: Config }

/**
 * A database of its own for a test or a file: a clone of the migrated template, or an empty one. At the end it is dropped,
 * unless the test failed; then its name is told, and it stays for an hour, or as long as the tests' server.
 */
export const createDatabase = async (t: Test, { migrated = true } = {}): Promise<TestDatabase> => {
  const admin = await connectAdmin()
  const file = basename(process.argv[1] ?? '').replace(/\W.*/, '')
  const name = `test_${Math.floor(Date.now() / 1000)}_${file}_${randomBytes(4).toString('hex')}`
  try {
    const template = migrated ? await prepareTemplate(admin) : 'template0'
    await admin.client.query(`create database ${name} template ${template} strategy file_copy`) // with fsync off the faster one
  } finally {
    await admin.end()
  }
  const url = admin.urlOf(name)
  const config = testConfig(url)
  const pool = createPool(config)
  t.teardown(async () => {
    await pool.end()
    if (!t.passing()) return t.comment(`the database stays for a while: ${url}`)
    const admin = await connectAdmin()
    await admin.client.query(`drop database if exists ${name} with (force)`)
    await admin.end()
  })
  return { url, name, pool, config }
}

/** The configuration of a service under test: quiet, on any port, with callbacks to this machine allowed. */
export const testConfig = (url: string, env: Record<string, string> = {}): Config =>
  loadConfig({
    DATABASE_URL: url,
    HOST: '127.0.0.1',
    PORT: '0',
    ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString('base64'),
    SESSION_SECRET: 'a secret that is only for tests, of 32 characters',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    CALLBACK_ALLOW_HTTP: 'on',
    LOG_LEVEL: 'silent',
    ...env
  })
