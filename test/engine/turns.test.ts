// Limits on connections per account, and requests that meet locked rows.
import pg from 'pg'
import t from 'tap'
import { createBatches } from '../../src/database/batched.ts'
import { createTurns } from '../../src/database/turns.ts'
import { eventually } from '../support/eventually.ts'
import { pluck } from '../support/exactly.ts'

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

t.test('works with a single connection', async t => {
  const { work, begun, ends, settled } = setUp(1)
  const done = [work('a', 'a1'), work('a', 'a2')]
  await settled()
  t.strictSame(begun, ['a1'])
  ends.get('a1')!.resolve()
  await eventually(() => ends.get('a2')?.resolve() ?? begun.length === 2)
  await Promise.all(done)
})

t.test('rejects calls that wait too long', async t => {
  const { work, ends } = setUp(1)
  const first = work('a', 'a1')
  await t.rejects(work('a', 'a2'), { code: 'unavailable', headers: { 'retry-after': /\d/ } })
  ends.get('a1')!.resolve()
  await first
})

/** Batches of requests such as `a1`, of owner a, and the owners whose rows are locked. */
const batches = (size = 50) => {
  const asked: string[][] = []
  const locked = new Set<string>()
  const ask = createBatches<string, string>({
    many: async questions => {
      asked.push(questions)
      return questions.map(question => (locked.has(question[0]!) ? null : `${question}!`))
    },
    ownerOf: question => question[0]!,
    size
  })
  return { asked, locked, ask }
}

t.test("retries a request that met a lock, and its owner's later ones, separately and without delaying other owners", async t => {
  const { asked, locked, ask } = batches()
  locked.add('a')
  const first = ask('a1')
  t.equal(await ask('b1'), 'b1!')
  const more = [ask('a2'), ask('a3')]
  t.equal(await ask('b2'), 'b2!')
  await eventually(() => asked.length > 4)
  t.strictSame(
    asked.filter(questions => questions.some(question => question.startsWith('b'))),
    [['a1', 'b1'], ['b2']]
  )
  locked.clear()
  t.strictSame(await Promise.all([first, ...more]), ['a1!', 'a2!', 'a3!'])
  const before = asked.length
  t.equal(await ask('a4'), 'a4!')
  t.strictSame(asked.slice(before), [['a4']], 'nothing is retried separately any more')
})

t.test('many locked requests of one owner do not delay another locked owner', async t => {
  const { asked, locked, ask } = batches(4)
  for (const owner of ['a', 'b']) locked.add(owner)
  const answers = Promise.allSettled(['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1'].map(ask))
  const ownersOf = (questions: string[]) => questions.map(question => question[0]!).sort()
  await eventually(() => asked.some(questions => `${ownersOf(questions)}` === 'a,b'))
  locked.clear()
  t.strictSame(pluck(await answers, 'status'), Array(7).fill('fulfilled'))
})

t.test('a request that stays locked is unavailable after two seconds', async t => {
  const { locked, ask } = batches()
  locked.add('a')
  await t.rejects(ask('a1'), { code: 'unavailable', headers: { 'retry-after': /\d/ } })
})

t.test('splits a statement that met a lock, and only the faulty request fails', async t => {
  let times = 0
  const ask = createBatches<number, number>({
    many: async questions => {
      if (times++ === 0) throw held
      if (questions.includes(3)) throw Object.assign(new pg.DatabaseError('three', 1, 'error'), { code: '22P02' })
      return questions
    },
    ownerOf: String
  })
  const answers = await Promise.allSettled([1, 2, 3].map(ask))
  t.strictSame(
    answers.map(answer => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
    [1, 2, 'three']
  )
})
