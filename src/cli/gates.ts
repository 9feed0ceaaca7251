/** `pgcue gates …` */
import type { Gate, PauseGate, PutGate } from '../client/index.ts'
import { acting, data, filtersOf, fromApi, listing } from './command.ts'
import { atHelp } from './cue-definition.ts'
import type { Output } from './output.ts'

const show = ({ breaker, budget, created_at: created, updated_at: updated, ...gate }: Gate, out: Output) =>
  out.fields({ ...gate, breaker: breaker && JSON.stringify(breaker), budget: budget && JSON.stringify(budget), created, updated })

export const list = listing(
  ({ gates }, query) => gates.list(query),
  answer => answer.gates,
  ['key', 'parallel', ['rate', ({ rate, per }) => rate && `${rate} per ${per}`], 'order', 'paused_at', 'description'],
  { empty: 'No gates.', options: filtersOf('listGates') }
)

export const get = acting(
  ({ gates }, key) => gates.get(key),
  ({ breaker_state, parts, ...gate }, out) => {
    show({ ...gate, ...(breaker_state && { breaker_state: breaker_state.state }) }, out)
    if (parts.length === 0) return
    out.line('')
    out.table(parts, ['part', 'running', 'waiting', 'next_start_at'])
  }
)

export const put = acting(({ gates }, key, body: PutGate) => gates.put(key, body), show, {
  options: {
    ...data,
    ...fromApi('putGate', {
      parallel: { member: 'parallel', value: 'N' },
      rate: { member: 'rate', value: 'N' },
      per: { member: 'per', value: 'TIME' },
      order: 'order',
      'on-failure': { member: 'on_failure', value: 'ACTION' },
      'breaker-failures': { member: 'breaker.failures', value: 'N' },
      'breaker-open-seconds': { member: 'breaker.open_seconds', value: 'N' },
      'breaker-max-open-seconds': { member: 'breaker.max_open_seconds', value: 'N' },
      'max-wait': { member: 'max_wait', value: 'TIME' },
      description: 'description'
    })
  },
  names: { gate_key: 'KEY' },
  notes: `What is not given gets its default. Cues name the gate with --gate KEY, or KEY#PART for a part that is counted by itself.

Example
  pgcue gates put openai --parallel 5 --rate 60 --per 10s`
})

export const pause = acting(({ gates }, key, body: PauseGate) => gates.pause(key, body), show, {
  options: fromApi('pauseGate', {
    reason: { member: 'reason', help: 'why it is paused, shown with the gate' },
    until: { member: 'until', help: `resume by itself at this time: ${atHelp}` }
  })
})

export const resume = acting(({ gates }, key) => gates.resume(key), show)

export const remove = acting(
  ({ gates }, key) => gates.delete(key).then(() => ({ key, deleted: true })),
  ({ key }) => `Gate ${key} deleted`
)
