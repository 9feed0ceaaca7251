import t from 'tap'
import { build as buildApp } from '../src/app.ts'
import { createClock } from '../src/database/clock.ts'
import { createPool } from '../src/database/pool.ts'
import { testConfig } from './database.ts'
import { build, eventually } from './setup.ts'

t.test("the service uses the database's clock", async t => {
  const { app, pool } = await build(t)
  await app.ready()
  const { rows } = await pool.query('select clock_timestamp() as now')
  t.ok(Math.abs(app.now().getTime() - rows[0].now.getTime()) < 1000)
  const clock = createClock()
  clock.learn(new Date('2040-01-01T00:00:00Z'), performance.now())
  t.equal(clock.now().getUTCFullYear(), 2040)
  clock.learn(new Date('2050-01-01T00:00:00Z'), performance.now() - 1000)
  t.equal(clock.now().getUTCFullYear(), 2040, 'an answer that took long tells little')
  t.equal((await build(t, '2030-01-15T09:00:00Z')).app.now().toISOString(), '2030-01-15T09:00:00.000Z', "a test's clock takes precedence")
})

t.test("uses the host's clock while the database is unreachable, then asks again", async t => {
  const config = testConfig('postgres://nobody@127.0.0.1:1/none')
  const pool = createPool(config)
  const connect = t.captureFn(pool.connect.bind(pool))
  Object.assign(pool, { connect })
  const app = await buildApp({ config, pool })
  t.teardown(() => app.close().then(() => pool.end()))
  await app.ready()
  t.ok(Math.abs(app.now().getTime() - Date.now()) < 1000)
  await eventually(() => connect.calls.length > 1)
})
