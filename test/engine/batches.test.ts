import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { createBatches, createPacer, type Pacer } from '../../src/database/batched.ts'
import { exactly } from '../support/exactly.ts'

/** Batches of numbers whose results, twice the number, arrive when the test says so. */
const forEver = 1_000_000
const setup = ({ isPipelined = false, ...options }: { size?: number; pacer?: Pacer; isDurable?: boolean; isPipelined?: boolean } = {}) => {
  const asked: (number | number[])[] = []
  /** Batches sent over the pipeline. */
  const piped: number[][] = []
  const pending: { answer: () => void; refuse: (error: unknown) => void }[] = []
  const until = <A>(answer: A) =>
    new Promise<A>((resolve, reject) => void pending.push({ answer: () => resolve(answer), refuse: error => reject(error) }))
  const many = (questions: number[]) => {
    asked.push(questions)
    return until(questions.map(question => question * 2))
  }
  const pipelined = (questions: number[]) => {
    piped.push(questions)
    return many(questions)
  }
  const ask = createBatches<number, number>({
    one: question => {
      asked.push(question)
      return until(question * 2)
    },
    many,
    ...(isPipelined && { pipelined }),
    pacer: createPacer(forEver),
    ...options
  })
  /** Completes the oldest statement, and waits for its effects. */
  const answer = async () => {
    pending.shift()!.answer()
    await turn()
  }
  return { asked, piped, ask, answer, pending }
}

/** How many requests each statement has. */
const sizes = (asked: (number | number[])[]) => asked.map(batch => [batch].flat().length)

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

t.test('sends requests together that arrive in the same turn of the event loop', async t => {
  const { asked, ask, answer } = setup()
  const answers = [ask(1), ask(2)]
  t.strictSame(asked, [])
  await turn()
  t.strictSame(asked, [[1, 2]])
  await answer()
  t.strictSame(await Promise.all(answers), [2, 4])
})

t.test('sends the next statement before the results of the previous one are processed', async t => {
  const { asked, ask, answer } = setup()
  const seen: number[] = []
  const asks = (question: number): Promise<unknown> => ask(question).then(() => seen.push(asked.length))
  const answers = [asks(1)]
  await turn()
  answers.push(asks(2), asks(3))
  await answer()
  answers.push(ask(4))
  await answer()
  await answer()
  await Promise.all(answers)
  t.strictSame(asked, [1, [2, 3], 4])
  t.strictSame(seen, [2, 3, 3])
})

t.test('statements take half of the requests that wait, unless these are few, and no more than fit', async t => {
  const { asked, ask, answer } = setup({ size: 12 })
  const answers = Array.from({ length: 50 }, (_, n) => ask(n))
  await turn()
  for (let n = 0; n < 6; n++) await answer()
  t.strictSame(sizes(asked), [12, 12, 12, 7, 4, 3])
  t.strictSame(
    await Promise.all(answers),
    answers.map((_, n) => 2 * n)
  )
})

t.test('a rest that would be small goes with the others', async t => {
  for (const [count, expected] of [
    [5, [5]],
    [6, [4, 2]]
  ] as const) {
    const { asked, ask, answer } = setup({ size: 12 })
    const answers = Array.from({ length: count }, (_, n) => ask(n))
    await turn()
    for (const _ of expected) await answer()
    await Promise.all(answers)
    t.strictSame(sizes(asked), expected)
  }
})

t.test('of requests that wait for the disk, a statement takes as many as fit', async t => {
  const { asked, ask, answer } = setup({ size: 12, isDurable: true })
  const answers = Array.from({ length: 20 }, (_, n) => ask(n))
  await turn()
  for (let n = 0; n < 2; n++) await answer()
  await Promise.all(answers)
  t.strictSame(sizes(asked), [12, 8])
})

/** Waits until as many statements as expected have started, and a little longer. */
const settled = async (asked: unknown[], count: number) => {
  for (const end = Date.now() + 5000; asked.length < count && Date.now() < end; ) await delay(1)
  await delay(20)
}

t.test('others do not wait for a statement that takes long, but for each other', async t => {
  const { asked, ask, pending } = setup({ pacer: createPacer(100) })
  const answers = [ask(1)]
  await delay(110)
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

t.test('how long a statement takes counts from its own start', async t => {
  const { asked, ask, answer } = setup({ pacer: createPacer(100) })
  const answers = [ask(1)]
  await turn()
  answers.push(ask(2))
  await delay(50)
  await answer()
  answers.push(ask(3))
  await turn()
  t.strictSame(asked, [1, 2])
  await settled(asked, 3)
  t.strictSame(asked, [1, 2, 3])
  await answer()
  await answer()
  t.strictSame(await Promise.all(answers), [2, 4, 6])
})

t.test('limits the number of concurrent statements, however long they take', async t => {
  const { asked, ask, answer } = setup({ pacer: createPacer(1) })
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

t.test('batches that share turns alternate, longest wait first', async t => {
  const pacer = createPacer(forEver)
  const [a, b, c] = [setup({ pacer }), setup({ pacer }), setup({ pacer })]
  const answers = [a.ask(1), b.ask(1), b.ask(2), c.ask(1)]
  await turn()
  answers.push(a.ask(2), a.ask(3))
  await turn()
  t.strictSame([a.asked, b.asked, c.asked], [[1], [], []])
  await a.answer()
  t.strictSame([a.asked, b.asked, c.asked], [[1], [[1, 2]], []])
  answers.push(b.ask(3))
  await b.answer()
  t.strictSame([a.asked, b.asked, c.asked], [[1], [[1, 2]], [1]])
  await c.answer()
  t.strictSame([a.asked, b.asked], [[1, [2, 3]], [[1, 2]]])
  await a.answer()
  t.strictSame(b.asked, [[1, 2], 3])
  await b.answer()
  t.strictSame(await Promise.all(answers), [2, 2, 4, 2, 4, 6, 6])
})

t.test('writes take turns without delaying reads', async t => {
  const pacer = createPacer(forEver)
  const [reads, writes] = [setup({ pacer }), setup({ pacer, isDurable: true })]
  const answers = [reads.ask(1), writes.ask(1), writes.ask(2)]
  await turn()
  t.strictSame([reads.asked, writes.asked], [[1], []])
  await reads.answer()
  t.strictSame(writes.asked, [[1, 2]])
  answers.push(reads.ask(2), writes.ask(3), writes.ask(4))
  await turn()
  t.strictSame([reads.asked, writes.asked], [[1, 2], [[1, 2]]])
  await reads.answer()
  await writes.answer()
  t.strictSame(writes.asked, [
    [1, 2],
    [3, 4]
  ])
  await writes.answer()
  t.strictSame(await Promise.all(answers), [2, 2, 4, 4, 6, 8])
})

/** Asks so many questions in one turn. */
const askAll = async (ask: (question: number) => Promise<number>, count: number) => {
  const answers = Array.from({ length: count }, (_, n) => ask(n))
  await turn()
  return answers
}

for (const { isDurable, least } of [
  { isDurable: false, least: 10 },
  { isDurable: true, least: 20 }
]) {
  t.test(`sends one ${isDurable ? 'write' : 'read'} behind the one under way once many queries wait`, async t => {
    const { asked, piped, ask, answer } = setup({ isPipelined: true, isDurable, size: 60 })
    const answers = [await askAll(ask, 2), await askAll(ask, least - 1)]
    t.strictSame(sizes(asked), [2])
    answers.push(await askAll(ask, 1))
    t.strictSame(sizes(asked), [2, least])
    answers.push(await askAll(ask, least))
    t.strictSame(sizes(asked), [2, least])
    await answer()
    t.strictSame(sizes(asked), [2, least, least])
    t.strictSame(piped, asked)
    await answer()
    await answer()
    t.strictSame(
      await Promise.all(answers.flat()),
      [2, least - 1, 1, least].flatMap(count => Array.from({ length: count }, (_, n) => n * 2))
    )
  })
}

t.test('nothing is sent behind a statement that hangs', async t => {
  const { asked, piped, ask, answer } = setup({ isPipelined: true, pacer: createPacer(30), size: 60 })
  const answers = await askAll(ask, 2)
  await delay(40)
  answers.push(...(await askAll(ask, 25)))
  t.strictSame([sizes(asked), sizes(piped)], [[2, 25], [2]])
  await answer()
  await answer()
  await Promise.all(answers)
})

t.test('nothing is sent behind a statement while another batcher waits', async t => {
  const pacer = createPacer(forEver)
  const [a, b] = [setup({ pacer, isPipelined: true, size: 60 }), setup({ pacer })]
  const answers = [...(await askAll(a.ask, 2)), ...(await askAll(b.ask, 1)), ...(await askAll(a.ask, 25))]
  t.strictSame([sizes(a.asked), sizes(b.asked)], [[2], []])
  await a.answer()
  t.strictSame([sizes(a.asked), sizes(b.asked)], [[2], [1]])
  await b.answer()
  t.strictSame(sizes(a.piped), [2, 25])
  await a.answer()
  await Promise.all(answers)
})

t.test('only whole batches go over the pipeline', async t => {
  const { asked, piped, ask, answer, pending } = setup({ isPipelined: true, size: 60 })
  const answers = await askAll(ask, 2)
  pending.shift()!.refuse(Object.assign(new pg.DatabaseError('no', 2, 'error'), { code: '23505' }))
  await turn()
  await answer()
  await answer()
  answers.push(...(await askAll(ask, 1)), ...(await askAll(ask, 25)))
  t.strictSame(asked, [[0, 1], 0, 1, 0])
  await answer()
  await answer()
  t.strictSame(sizes(asked), [2, 1, 1, 1, 25])
  t.strictSame(sizes(piped), [2, 25])
  await Promise.all(answers)
})

t.test('a query whose row is locked is not sent over the pipeline again', async t => {
  const asked: string[] = []
  const answers = (over: string, answer: number | null) => async (questions: number[]) => {
    asked.push(`${over} ${questions}`)
    return questions.map(question => (question === 1 ? answer : question))
  }
  const ask = createBatches<number, number>({ many: answers('many', 1), pipelined: answers('pipelined', null) })
  t.strictSame(await Promise.all([ask(0), ask(1)]), [0, 1])
  t.strictSame(asked, ['pipelined 0,1', 'many 1'])
})

t.test('repeats each request of a failed batch separately, and only the faulty one fails', async t => {
  const asked: unknown[] = []
  const ask = createBatches<number, number>({
    one: async question => {
      asked.push(question)
      if (question === 3) throw new pg.DatabaseError('three is no question', 0, 'error')
      return question
    },
    many: async questions => {
      asked.push(questions)
      throw new pg.DatabaseError('three is no question', 0, 'error')
    },
    pacer: createPacer(forEver)
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
    one: question => {
      asked.push(question)
      return new Promise(resolve => {
        release = () => resolve(question)
      })
    },
    many: async questions => {
      asked.push(questions)
      throw Object.assign(new pg.DatabaseError('no', 2, 'error'), { code: '23505' })
    },
    pacer: createPacer(forEver)
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
