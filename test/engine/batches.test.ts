import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { createBatches } from '../../src/database/batched.ts'
import { exactly } from '../support/exactly.ts'

/** Batches of numbers whose results, twice the number, arrive when the test says so. */
const setup = () => {
  const asked: (number | number[])[] = []
  const pending: { answer: () => void; refuse: (error: unknown) => void }[] = []
  const until = <A>(answer: A) =>
    new Promise<A>((resolve, reject) => void pending.push({ answer: () => resolve(answer), refuse: error => reject(error) }))
  const many = (questions: number[]) => {
    asked.push(questions)
    return until(questions.map(question => question * 2))
  }
  const ask = createBatches<number, number>({
    single: question => {
      asked.push(question)
      return until(question * 2)
    },
    many
  })
  /** Completes the oldest statement, and waits for its effects. */
  const answer = async () => {
    pending.shift()!.answer()
    await turn()
  }
  return { asked, ask, answer, pending }
}

t.test('sends a single request immediately, and those arriving meanwhile together', async t => {
  const { asked, ask, answer } = setup()
  const answers = [ask(1)]
  await turn()
  answers.push(ask(2), ask(3))
  await turn()
  t.strictSame(asked, [1])
  await answer()
  t.strictSame(asked, [1, [2, 3]])
  answers.push(ask(4))
  await answer()
  t.strictSame(asked, [1, [2, 3], 4])
  await answer()
  t.strictSame(await Promise.all(answers), [2, 4, 6, 8])
})

t.test('a statement takes as many requests as fit', async t => {
  const { asked, ask, answer } = setup()
  const answers = Array.from({ length: 120 }, (_, n) => ask(n))
  await turn()
  for (let n = 0; n < 2; n++) await answer()
  await Promise.all(answers)
  t.strictSame(
    asked.map(batch => [batch].flat().length),
    [100, 20]
  )
})

/** Waits until as many statements as expected have started, and a little longer. */
const settled = async (asked: unknown[], count: number) => {
  for (const end = Date.now() + 5000; asked.length < count && Date.now() < end; ) await delay(1)
  await delay(20)
}

t.test('others do not wait for a statement that takes long, but for each other', async t => {
  const { asked, ask, pending } = setup()
  const answers = [ask(1)]
  await delay(60)
  answers.push(ask(2))
  await turn()
  answers.push(ask(3), ask(4))
  await turn()
  t.strictSame(asked, [1, 2])
  pending.pop()!.answer()
  await turn()
  t.strictSame(asked, [1, 2, [3, 4]])
  for (const { answer } of pending) answer()
  t.strictSame(await Promise.all(answers), [2, 4, 6, 8])
})

t.test('limits the number of concurrent statements, however long they take', async t => {
  const { asked, ask, answer } = setup()
  const answers = [ask(1)]
  await turn()
  answers.push(ask(2), ask(3))
  await settled(asked, 2)
  answers.push(ask(4))
  await settled(asked, 2)
  t.strictSame(asked, [1, [2, 3]])
  await answer()
  t.strictSame(asked, [1, [2, 3], 4])
  await answer()
  await answer()
  t.strictSame(await Promise.all(answers), [2, 4, 6, 8])
})

t.test('repeats each request of a failed batch separately, and only the faulty one fails', async t => {
  const asked: unknown[] = []
  const ask = createBatches<number, number>({
    single: async question => {
      asked.push(question)
      if (question === 3) throw new pg.DatabaseError('three is no question', 0, 'error')
      return question
    },
    many: async questions => {
      asked.push(questions)
      throw new pg.DatabaseError('three is no question', 0, 'error')
    }
  })
  const answers = await Promise.allSettled([1, 2, 3, 4].map(ask))
  t.strictSame(asked, [[1, 2, 3, 4], 1, 2, 3, 4])
  exactly(t, answers, [{ value: 1 }, { value: 2 }, { reason: { message: 'three is no question' } }, { value: 4 }])
})

t.test('fails all requests when the database is unavailable, and continues with the next', async t => {
  const { asked, ask, answer, pending } = setup()
  const first = ask(1)
  await turn()
  const answers = Promise.allSettled([first, ask(2), ask(3)])
  await answer()
  pending.shift()!.refuse(Object.assign(new Error('gone'), { code: '57P01' }))
  exactly(t, await answers, [{ value: 2 }, { reason: { code: '57P01' } }, { reason: { code: '57P01' } }])
  const next = ask(4)
  await turn()
  await answer()
  t.equal(await next, 8)
  t.strictSame(asked, [1, [2, 3], 4])
})

t.test('repeats the requests of a failed batch before the next batch starts', async t => {
  const asked: (number | number[])[] = []
  let release = () => {}
  const ask = createBatches<number, number>({
    single: question => {
      asked.push(question)
      return new Promise(resolve => {
        release = () => resolve(question)
      })
    },
    many: async questions => {
      asked.push(questions)
      throw Object.assign(new pg.DatabaseError('no', 2, 'error'), { code: '23505' })
    }
  })
  const answer = async () => {
    release()
    await turn()
  }
  const answers = [ask(1)]
  await turn()
  answers.push(ask(2), ask(3))
  await answer()
  answers.push(ask(4))
  await answer()
  t.strictSame(asked, [1, [2, 3], 2, 3])
  await answer()
  t.strictSame(asked, [1, [2, 3], 2, 3, 4])
  await answer()
  t.strictSame(await Promise.all(answers), [1, 2, 3, 4])
})

t.test('does not repeat requests that may have taken effect although their response was lost', async t => {
  const { asked, ask, answer, pending } = setup()
  const first = ask(1)
  await turn()
  const answers = Promise.allSettled([first, ask(2), ask(3)])
  await answer()
  pending.shift()!.refuse(new TypeError('an answer that nobody understands'))
  exactly(t, await answers, [{ value: 2 }, { reason: TypeError }, { reason: TypeError }])
  t.strictSame(asked, [1, [2, 3]])
})
