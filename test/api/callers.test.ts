/** How one caller's requests leave room for everybody else's. */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { limitCallers } from '../../src/accounts/callers.ts'

const refusal = { error: 'rate_limit_exceeded', retry_after: 30 }
const admitted = { error: null, retry_after: null }
const start = Date.parse('2030-01-01T09:00:00Z')

/** Callers whose questions are counted, and answered once `release` is called; `answers` says how. */
const stage = (closing?: AbortSignal) => {
  let nowMs = start
  const asked: string[] = []
  const answers: Record<string, typeof refusal | typeof admitted> = {}
  let gate = Promise.resolve()
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    return resolve
  }
  const ask = limitCallers(
    async (caller: string) => {
      asked.push(caller)
      await gate
      return answers[caller] ?? admitted
    },
    { callerOf: caller => caller, now: () => new Date(nowMs), closing }
  )
  return { ask, asked, answers, hold, at: (ms: number) => (nowMs = start + ms) }
}

t.test('a refused caller is not asked for again within a second, and learns the remaining time', async t => {
  const { ask, asked, answers, at } = stage()
  answers.ada = refusal
  t.same(await ask('ada'), refusal)
  at(999)
  t.same(await ask('ada'), refusal)
  t.same(await ask('ben'), admitted)
  t.same(asked, ['ada', 'ben'])
  answers.ada = admitted
  at(1000)
  t.same(await ask('ada'), admitted)
})

t.test('a caller that may be admitted within the next second is asked for every time', async t => {
  const { ask, asked, answers } = stage()
  answers.ada = { ...refusal, retry_after: 1 }
  for (let n = 0; n < 3; n++) t.same(await ask('ada'), { ...refusal, retry_after: 1 })
  t.equal(asked.length, 3)
})

t.test('other errors are not remembered', async t => {
  const { ask, asked, answers } = stage()
  answers.ada = { error: 'invalid_api_key', retry_after: null } as never
  for (let n = 0; n < 3; n++) await ask('ada')
  t.equal(asked.length, 3)
})

t.test('the 21st repeated refusal is held, and sent when the service stops', async t => {
  const closing = new AbortController()
  const { ask, answers } = stage(closing.signal)
  answers.ada = refusal
  await ask('ada')
  for (let n = 0; n < 20; n++) await ask('ada')
  let sent = 0
  const held = [ask('ada'), ask('ada')].map(answer => answer.then(() => sent++))
  await delay(50)
  t.equal(sent, 0)
  t.same(await ask('ben'), admitted)
  closing.abort()
  await Promise.all(held)
})

t.test('a caller has at most 50 questions under way; the others follow, or are refused with it', async t => {
  const { ask, asked, answers, hold } = stage()
  const release = hold()
  const all = Array.from({ length: 250 }, () => ask('ada'))
  const other = ask('ben')
  await delay(1)
  t.equal(asked.filter(caller => caller === 'ada').length, 50)
  t.equal(asked.filter(caller => caller === 'ben').length, 1, 'nobody else waits')
  release()
  t.same(await Promise.all(all), Array(250).fill(admitted))
  t.same(await other, admitted)
  t.equal(asked.length, 251)

  const refuse = hold()
  const more = Array.from({ length: 65 }, () => ask('ada'))
  await delay(1)
  answers.ada = refusal
  refuse()
  t.same(await Promise.all(more), Array(65).fill(refusal))
  t.equal(asked.length, 301, 'the 15 that waited cost nothing')
})

t.test('a question that fails gives its place to the next', async t => {
  let fail = true
  const ask = limitCallers(
    async () => {
      await delay(1)
      if (fail) throw new Error('away')
      return admitted
    },
    { callerOf: () => 'ada', now: () => new Date(start) }
  )
  const all = await Promise.allSettled(Array.from({ length: 150 }, () => ask('ada')))
  t.equal(all.filter(({ status }) => status === 'rejected').length, 150)
  fail = false
  t.same(await ask('ada'), admitted)
})
