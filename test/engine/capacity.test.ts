/** Sharing of open deliveries among accounts: exact numbers, with small capacities. */
import t from 'tap'
import { createCapacity } from '../../src/deliveries/capacity.ts'
import { createLimits } from '../../src/deliveries/limits.ts'
import { createTurnQueue } from '../../src/firing/turn-queue.ts'
import { createRun } from '../support/run.ts'

const names = (count: number, prefix = 'account') => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)
const unlimited = () => true

/** Opens as many deliveries as possible for these accounts in turn; none ever ends. */
const fill = (capacity: ReturnType<typeof createCapacity>, accounts: string[]) => {
  for (let opened = true; opened; ) opened = accounts.map(account => capacity.tryOpen(account)).includes(true)
  return accounts.map(account => capacity.openOf(account))
}

t.test('n accounts with hanging receivers hold 1/(n+1) each and leave as much free', async t => {
  for (const n of [1, 2, 3, 5, 9, 19, 99]) {
    const capacity = createCapacity({ shared: 6000, reserve: 0, isAllowed: unlimited })
    t.same(fill(capacity, names(n)), Array(n).fill(6000 / (n + 1)))
    t.equal(6000 - capacity.open, 6000 / (n + 1))
  }
})

t.test('gives freed capacity to the account that holds less', async t => {
  const capacity = createCapacity({ shared: 600, reserve: 0, isAllowed: unlimited })
  t.same(fill(capacity, ['first']), [300])
  t.same(fill(capacity, ['second']), [150])
  for (let n = 0; n < 300; n++) {
    capacity.close('first')
    capacity.tryOpen('second') || capacity.tryOpen('first')
  }
  t.same(['first', 'second'].map(capacity.openOf), [199, 201])
})

t.test('an account holds at most what its plan allows', async t => {
  const capacity = createCapacity({ shared: 6000, reserve: 1000, isAllowed: (account, open) => open < (account === 'small' ? 50 : 250) })
  t.same(fill(capacity, ['small', 'large']), [50, 250])
  t.same(capacity.full(), ['small', 'large'])
  capacity.close('small')
  t.same(capacity.full(), ['large'])
})

t.test(
  'even with hundreds of accounts at their share, every other account can send one delivery, and more if its receivers respond quickly',
  async t => {
    const capacity = createCapacity({ isAllowed: (_, open) => open < 50 })
    const hanging = names(400)
    for (const account of hanging) {
      fill(capacity, [account])
      capacity.note(account, false)
    }
    t.ok(capacity.open > 5000, `${capacity.open} are open`)
    t.equal(capacity.openOf('victim'), 0)
    t.same(fill(capacity, ['victim']), [1])
    capacity.note('victim', true)
    t.same(fill(capacity, ['victim']), [5])
    t.same(fill(capacity, ['hanging-again']), [1])
    t.ok(hanging.every(account => capacity.openOf(account) > 0))
    for (const account of ['victim', ...hanging]) while (capacity.openOf(account) > 0) capacity.close(account)
    capacity.close('hanging-again')
    t.equal(capacity.open, 0)
    t.same(fill(capacity, ['alone']), [50], 'all is as before')
  }
)

t.test('reads limits of accounts only when they hold as many as the smallest plan allows, and divides them among engines', async t => {
  const asked: string[][] = []
  let read = () => {}
  let engines = 1
  const isAllowed = createLimits({
    fn: {
      openLimits: async ({ account_ids }) => {
        asked.push(account_ids)
        return account_ids.filter(account_id => account_id !== 'gone').map(account_id => ({ account_id, open_deliveries: 250 }))
      }
    },
    least: 50,
    engines: () => engines,
    run: createRun(() => read())
  })
  t.ok(isAllowed('a', 49))
  t.same(asked, [])
  const once = new Promise<void>(resolve => (read = resolve))
  t.notOk(isAllowed('a', 50), 'not before its plan is known')
  t.notOk(isAllowed('gone', 50))
  await once
  t.same(asked, [['a', 'gone']])
  t.ok(isAllowed('a', 249))
  t.notOk(isAllowed('a', 250))
  t.notOk(isAllowed('gone', 50))
  t.equal(asked.length, 1)
  engines = 3
  t.ok(isAllowed('a', 83))
  t.notOk(isAllowed('a', 84))
})

t.test('reads the limits of all accounts once any account has a smaller one than every plan', async t => {
  let read = () => {}
  const isAllowed = createLimits({
    fn: {
      openLimits: async ({ account_ids }) => [
        { account_id: null, open_deliveries: 5 },
        ...account_ids.map(account_id => ({ account_id, open_deliveries: account_id === 'small' ? 5 : 250 }))
      ]
    },
    least: 50,
    engines: () => 1,
    run: createRun(() => read())
  })
  const next = () => new Promise<void>(resolve => (read = resolve))
  t.ok(isAllowed('small', 0))
  await next()
  t.notOk(isAllowed('small', 5))
  t.notOk(isAllowed('large', 5))
  await next()
  t.notOk(isAllowed('small', 5))
  t.ok(isAllowed('large', 249))
})

t.test('a queue serves accounts in turn and keeps attempts that are not admitted', async t => {
  const queue = createTurnQueue<string>(2)
  for (const item of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1', 'c2', 'c3']) queue.add(item[0]!, item)
  t.same(queue.take(5), ['a1', 'a2', 'b1', 'c1', 'c2'])
  t.same(
    queue.take(9, account => account !== 'a'),
    ['c3']
  )
  t.equal(queue.size, 3)
  queue.add('b', 'b2')
  t.same(queue.take(9), ['a3', 'a4', 'b2', 'a5'])
  t.same([queue.size, queue.take(9)], [0, []])
})
