import { pino } from 'pino'
import type { Test } from 'tap'
import { decryptKey } from '../../src/accounts/keys.ts'
import type { Config } from '../../src/config.ts'
import { type Clock, createClock } from '../../src/database/clock.ts'
import { createAddressRules } from '../../src/deliveries/address.ts'
import { startEngine as start } from '../../src/engine/engine.ts'
import type { Metrics } from '../../src/metrics/metrics.ts'
import type { Traces } from '../../src/traces/traces.ts'
import { reusePool } from './database.ts'

/** An engine as a replica runs it, in real time. Stopped at the end of the test unless stopped before. */
export const startEngine = async (t: Test, config: Config, metrics?: Metrics, traces?: Traces, clock: Clock = createClock()) => {
  const engine = await start({
    config,
    rules: createAddressRules({ allowCidrs: config.callbackAllowCidrs, allowHttp: config.callbackAllowHttp }),
    clock,
    decryptKey: (ciphertext, purpose) => decryptKey(config.encryptionKeys, ciphertext, purpose),
    metrics,
    traces,
    openPool: reusePool,
    log: pino({ level: process.env.TEST_LOG ?? 'silent' })
  })
  let stopped: Promise<number> | undefined
  const stop = () => (stopped ??= engine.stop())
  t.teardown(stop)
  return { stop }
}
