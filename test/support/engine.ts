import { pino } from 'pino'
import type { Test } from 'tap'
import { decryptKey } from '../../src/accounts/keys.ts'
import type { Config } from '../../src/config.ts'
import { type Clock, createClock } from '../../src/database/clock.ts'
import { createOutageLog } from '../../src/database/outage-log.ts'
import { createAddressRules } from '../../src/deliveries/address.ts'
import { startEngine as start } from '../../src/engine/engine.ts'
import { createMetrics, type Metrics } from '../../src/metrics/metrics.ts'
import { type Traces, untraced } from '../../src/traces/traces.ts'
import { reusePool } from './database.ts'

/** An engine as a replica runs it, in real time. Stopped at the end of the test unless stopped before. */
export const startEngine = async (
  t: Test,
  config: Config,
  metrics: Metrics = createMetrics(),
  traces: Traces = untraced,
  clock: Clock = createClock()
) => {
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const engine = await start({
    config,
    rules: createAddressRules({ allowCidrs: config.callbackAllowCidrs, allowHttp: config.callbackAllowHttp }),
    clock,
    decryptKey: (ciphertext, purpose) => decryptKey(config.encryptionKeys, ciphertext, purpose),
    metrics,
    traces,
    outageLog: createOutageLog(log),
    openPool: reusePool,
    log
  })
  let stopped: Promise<number> | undefined
  const stop = () => (stopped ??= engine.stop())
  t.teardown(stop)
  return { stop }
}
