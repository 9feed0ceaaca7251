// Limits on connections per account, and requests that meet locked rows.
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { createBatches } from '../../src/database/batched.ts'
import { createTurns } from '../../src/database/turns.ts'

const held = Object.assign(new pg.DatabaseError('canceling statement due to lock timeout', 1, 'error'), { code: '55P03' })

/** A gate, and work of an account that ends when the test resolves it. */
const setUp = (most: number) => {
  const gate = createTurns(most)
  const begun: string[] = []
  const ends = new Map<string, { resolve: () => void; reject: (error: unknown) => void }>()
  const work = (account: string, name: string) =>
    gate(account, () => {
      begun.push(name)
      return new Promise<void>((resolve, reject) => ends.set(name, { resolve, reject }))
    })
  const settled = () => new Promise(resolve => setImmediate(resolve))
  return { work, begun, ends, settled }
}

t.test('an account has at most three operations under way, and those that wait run in order', async t => {
  const { work, begun, ends, settled } = setUp(3)
  const done = ['a1', 'a2', 'a3', 'a4', 'a5'].map(name => work('a', name))
  done.push(work('b', 'b1'))
  await settled()
  t.strictSame(begun, ['a1', 'a2', 'a3', 'b1'])
  ends.get('a2')!.resolve()
  await settled()
  t.strictSame(begun, ['a1', 'a2', 'a3', 'b1', 'a4'])
  for (const name of ['a1', 'a3', 'a4']) ends.get(name)!.resolve()
  await settled()
  for (const name of ['a5', 'b1']) ends.get(name)!.resolve()
  await Promise.all(done)
  t.strictSame(begun, ['a1', 'a2', 'a3', 'b1', 'a4', 'a5'])
})

t.test('rejects calls that wait too long', async t => {
  const { work, ends } = setUp(1)
  const first = work('a', 'a1')
  await t.rejects(work('a', 'a2'), { code: 'unavailable', headers: { 'retry-after': /\d/ } })
  ends.get('a1')!.resolve()
  await first
})

/** Batches of requests such as `a1`, of owner a, and the owners whose rows are locked. */
const batches = () => {
  const requests: string[] = []
  const locked = new Set<string>()
  const ask = createBatches<string, string>({
    many: async questions => {
      requests.push(...questions)
      return questions.map(question => (locked.has(question[0]!) ? null : `${question}!`))
    }
  })
  return { requests, locked, ask }
}

t.test('retries requests that met a lock ever less often, without delaying others', async t => {
  const { requests, locked, ask } = batches()
  locked.add('a')
  const answers = [ask('a1'), ask('a2')]
  for (let n = 1; n <= 3; n++) {
    t.equal(await ask(`b${n}`), `b${n}!`)
    await delay(100)
  }
  locked.clear()
  t.strictSame(await Promise.all(answers), ['a1!', 'a2!'])
  t.ok(requests.filter(name => name === 'a1').length <= 5, 'after 0, 50, 100, 200 and 400 ms')
})

t.test('a request that stays locked is unavailable within two seconds', async t => {
  const { requests, locked, ask } = batches()
  locked.add('a')
  const startedAt = performance.now()
  await t.rejects(ask('a1'), { code: 'unavailable', headers: { 'retry-after': /\d/ } })
  t.ok(performance.now() - startedAt < 2500)
  t.ok(requests.length >= 5)
})

t.test('splits a statement that met a lock, and only the faulty request fails', async t => {
  let times = 0
  const ask = createBatches<number, number>({
    many: async questions => {
      if (times++ === 0) throw held
      if (questions.includes(3)) throw Object.assign(new pg.DatabaseError('three', 1, 'error'), { code: '22P02' })
      return questions
    }
  })
  const answers = await Promise.allSettled([1, 2, 3].map(ask))
  t.strictSame(
    answers.map(answer => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
    [1, 2, 'three']
  )
})
