import t from 'tap'
import { shareReads } from '../../src/database/shared-read.ts'
import { pluck } from '../support/exactly.ts'

t.test('equal reads of one turn share a query; others and later ones have their own', async t => {
  const queries: object[] = []
  const read = shareReads(async (question: { of: string }) => {
    queries.push(question)
    return queries.length
  })
  t.same(await Promise.all([read({ of: 'a' }), read({ of: 'b' }), read({ of: 'a' })]), [1, 2, 1])
  t.same(queries, [{ of: 'a' }, { of: 'b' }])
  t.equal(await read({ of: 'a' }), 3)
})

t.test('a failed read fails for all that share it, and only for them', async t => {
  let away = true
  const read = shareReads(async () => {
    if (away) throw new Error('away')
    return 'answer'
  })
  const results = await Promise.allSettled([read({}), read({})])
  t.same(pluck(results, 'status'), ['rejected', 'rejected'])
  away = false
  t.equal(await read({}), 'answer')
})
