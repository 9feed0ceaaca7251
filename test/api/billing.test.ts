/** Billing: pages to go to, smaller plans, and the end of an account. */
import t from 'tap'
import { startEngine } from '../support/engine.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { mailServer, sendMails } from '../support/mailbox.ts'
import { build, error, eventually } from '../support/setup.ts'
import { billed, prices, standIn } from '../support/stripe.ts'

const worker = { name: 'work', cron: '0 9 * * *', worker: true }

// Pages -------------------------------------------------------------------------------------------------------------------------------

t.test('without settings, every billing route returns an error that says so, and logs none', async t => {
  const log: { level: number }[] = []
  const logStream = { write: (line: string) => void log.push(JSON.parse(line)) }
  const { call, as } = await build(t, undefined, { env: { LOG_LEVEL: 'info' }, logStream })
  const missing = error('billing_not_configured', 503)
  exactly(t, await call('POST', '/v1/billing/checkout', { plan: 'pro', interval: 'monthly' }), missing)
  exactly(t, await call('POST', '/v1/billing/portal'), missing)
  exactly(t, await as(null).call('POST', '/v1/billing/webhook', {}, { 'stripe-signature': 't=1,v1=0' }), missing)
  await eventually(() => log.length >= 3) // with two cells, both log the webhook
  t.notOk(log.some(({ level }) => level > 30))
})

t.test('a checkout returns a Stripe page for the price of the plan and interval', async t => {
  const { post, account, stripe, customer } = await billed(t)
  for (const [plan, interval] of [
    ['pro', 'annual'],
    ['scale', 'monthly'],
    ['scale', 'annual']
  ] as const) {
    t.same(await post('/v1/billing/checkout', { plan, interval }), { checkout_url: 'https://checkout.example.com/cs_1' })
    const { path, form } = stripe.asked.at(-1)!
    exactly(
      t,
      { path, form },
      {
        path: '/v1/checkout/sessions',
        form: {
          mode: 'subscription',
          customer,
          client_reference_id: account.id,
          'line_items[0][price]': prices[plan][interval],
          'line_items[0][quantity]': '1',
          'metadata[account_id]': account.id,
          'metadata[plan]': plan,
          'subscription_data[metadata][account_id]': account.id,
          success_url: /^https:\/\/cue\.example\.com\//,
          cancel_url: /^https:\/\/cue\.example\.com\//
        }
      }
    )
  }
  t.equal(stripe.asked.filter(({ path }) => path === '/v1/customers').length, 1, 'one customer for all checkouts')
})

t.test('simultaneous checkouts create one customer', async t => {
  const { as, register, stripe, pool } = await billed(t)
  const account = await register()
  await Promise.all(Array.from({ length: 5 }, () => as(account).post('/v1/billing/checkout', { plan: 'pro', interval: 'monthly' })))
  const { rows } = await pool.query('select stripe_customer_id as id from cue.accounts where id = $1', [account.id])
  t.equal(stripe.customers.get(`pgcue-customer-${account.id}`), rows[0].id)
  const used = stripe.asked.filter(({ form }) => form.client_reference_id === account.id).map(({ form }) => form.customer)
  t.same([...new Set(used)], [rows[0].id])
})

t.test('rejects an invalid plan or interval with its own code', async t => {
  const { call } = await billed(t)
  for (const plan of ['free', 'PRO', '', 5, null, ['pro'], 'pro\n', '__proto__']) {
    exactly(t, await call('POST', '/v1/billing/checkout', { plan, interval: 'monthly' }), error('invalid_plan', 400), JSON.stringify(plan))
  }
  for (const interval of ['weekly', '', 5, null, {}, 'toString']) {
    exactly(
      t,
      await call('POST', '/v1/billing/checkout', { plan: 'pro', interval }),
      error('invalid_interval', 400),
      JSON.stringify(interval)
    )
  }
  exactly(t, await call('POST', '/v1/billing/checkout', { plan: 'pro' }), {
    status: 422,
    body: { detail: [{ type: 'missing', loc: ['body', 'interval'] }] }
  })
  exactly(t, await call('POST', '/v1/billing/checkout', { plan: 'pro', interval: 'monthly', price: 'price_x' }), {
    status: 422,
    body: { detail: [{ type: 'extra_forbidden' }] }
  })
})

t.test('a plan without a price cannot be bought', async t => {
  const { call } = await billed(t, { STRIPE_PRICES: '{"pro": {"monthly": "price_pro_m"}}' })
  exactly(t, await call('POST', '/v1/billing/checkout', { plan: 'pro', interval: 'annual' }), error('billing_not_configured', 503))
  exactly(t, await call('POST', '/v1/billing/checkout', { plan: 'scale', interval: 'monthly' }), error('billing_not_configured', 503))
})

t.test('the portal requires a Stripe customer', async t => {
  const { post, call, as, register, stripe, customer } = await billed(t)
  exactly(t, await as(await register()).call('POST', '/v1/billing/portal'), error('no_stripe_customer', 400))
  t.same(await post('/v1/billing/portal'), { portal_url: 'https://portal.example.com/1' })
  exactly(t, stripe.asked.at(-1), { path: '/v1/billing_portal/sessions', form: { customer, return_url: /^https:\/\/cue\.example\.com\// } })
  stripe.customers.clear()
  exactly(t, await call('POST', '/v1/billing/portal'), error('no_stripe_customer', 400), 'deleted at Stripe')
})

t.test('a subscriber is sent to the portal instead of buying a second subscription', async t => {
  const { post, send, paid, stripe } = await billed(t)
  await send(paid())
  t.same(await post('/v1/billing/checkout', { plan: 'scale', interval: 'monthly' }), { checkout_url: 'https://portal.example.com/1' })
  exactly(t, stripe.asked.at(-1)!.form, {
    'flow_data[type]': 'subscription_update',
    'flow_data[subscription_update][subscription]': 'sub_1'
  })
})

t.test('if Stripe fails, changes nothing and does not repeat its message', async t => {
  const { call, stripe, pool, as, register } = await billed(t)
  const account = await register()
  for (const [status, type] of [
    [401, 'invalid_request_error'],
    [402, 'card_error'],
    [400, 'invalid_request_error']
  ] as const) {
    stripe.fail(status, { type, message: 'hunter2' })
    const answer = await as(account).call('POST', '/v1/billing/checkout', { plan: 'pro', interval: 'monthly' })
    exactly(t, answer, error('stripe_error', 502))
    t.notMatch(JSON.stringify(answer.body), /hunter2/)
    exactly(t, await call('POST', '/v1/billing/portal'), error('stripe_error', 502))
  }
  exactly(t, (await pool.query('select stripe_customer_id from cue.accounts where id = $1', [account.id])).rows, [
    { stripe_customer_id: null }
  ])
  stripe.fail(null)
  exactly(t, await as(account).call('POST', '/v1/billing/checkout', { plan: 'pro', interval: 'monthly' }), { status: 200 })
})

// Smaller plans -----------------------------------------------------------------------------------------------------------------------

t.test('a smaller plan pauses the newest cues over its limit, deletes none, and lists them in a mail', async t => {
  const service = await billed(t, { PLANS: '{"free":{"cues":3}}' })
  const { send, about, post, get, patch, clock, mails, account } = service
  await send(about('updated', 'active', 'price_pro_m'))
  const ids: string[] = []
  for (let n = 0; n < 6; n++) {
    ids.push((await post('/v1/cues', { ...worker, name: `cue ${n}` })).id)
    clock.advance('1 minute')
  }
  await patch(`/v1/cues/${ids[1]}`, { status: 'paused' })
  await patch('/v1/auth/me', { memory_block_enabled: true })
  await send(about('deleted', 'canceled', 'price_pro_m'))
  const { cues, total } = await get('/v1/cues')
  t.equal(total, 7)
  const byName = Object.fromEntries(cues.map((cue: { name: string; status: string; next_run: unknown }) => [cue.name, cue]))
  exactly(t, byName, {
    'cue 0': { status: 'active' },
    'cue 1': { status: 'paused', paused_by: 'user' },
    'cue 2': { status: 'active' },
    'cue 3': { status: 'active' },
    'cue 4': { status: 'paused', paused_by: 'plan', paused_at: clock.now().toISOString(), paused_until: null, next_run: null },
    'cue 5': { status: 'paused', next_run: null },
    'Memory block update check': { status: 'active' }
  })
  t.same(await mails('downgrade'), [{ kind: 'downgrade', account_id: account.id, cue_ids: [ids[5], ids[4]] }])
  const server = await mailServer(t)
  await sendMails(service, { smtpUrl: server.url })
  t.ok(server.mails.find(({ subject }) => subject === 'Your plan is now free')?.text.includes('- “cue 5”\n- “cue 4”\n'))
})

t.test('a cue paused for a smaller plan resumes only when another is removed or the plan grows', async t => {
  const { send, about, post, patch, call, clock } = await billed(t, { PLANS: '{"free":{"cues":1}}' })
  await send(about('updated', 'active', 'price_pro_m'))
  const first = await post('/v1/cues', worker)
  clock.advance('1 minute')
  const second = await post('/v1/cues', worker)
  await send(about('deleted', 'canceled', 'price_pro_m'))
  exactly(t, await call('PATCH', `/v1/cues/${second.id}`, { status: 'active' }), error('cue_limit_exceeded', 403))
  exactly(t, await call('PATCH', `/v1/cues/${first.id}`, { status: 'active' }), { status: 200 }, 'an active cue stays active')
  exactly(t, await call('POST', '/v1/cues', worker), error('cue_limit_exceeded', 403))
  await patch(`/v1/cues/${first.id}`, { status: 'paused' })
  const both = await Promise.all([first, second].map(({ id }) => call('PATCH', `/v1/cues/${id}`, { status: 'active' })))
  t.same(both.map(({ status }) => status).sort(), [200, 403], 'exactly one of two simultaneous requests')
  await send(about('created', 'active', 'price_pro_m', { id: 'sub_2' }))
  for (const { id } of [first, second])
    exactly(t, await call('PATCH', `/v1/cues/${id}`, { status: 'active' }), { status: 200, body: { status: 'active' } })
})

t.test('cues created during a downgrade never exceed the new limit', async t => {
  const { send, about, post, call, get } = await billed(t, { PLANS: '{"free":{"cues":2},"pro":{"cues":50}}' })
  await send(about('updated', 'active', 'price_pro_m'))
  for (let n = 0; n < 3; n++) await post('/v1/cues', worker)
  const down = about('deleted', 'canceled', 'price_pro_m')
  await Promise.all([send(down), ...Array.from({ length: 8 }, () => call('POST', '/v1/cues', worker))])
  t.ok((await get('/v1/usage')).cues.active <= 2)
})

// Leaving -----------------------------------------------------------------------------------------------------------------------------

t.test('deleting an account deletes its customer at Stripe, which ends its subscription', async t => {
  const stripe = await standIn(t)
  const { config, pool, account, register, as, fn } = await build(t, undefined, { env: stripe.env })
  const other = await register()
  for (const { post } of [as(account), as(other)]) await post('/v1/billing/checkout', { plan: 'pro', interval: 'monthly' })
  const customer_id = stripe.customers.get(`pgcue-customer-${account.id}`)
  await startEngine(t, config)
  const deletions = () => stripe.asked.filter(({ method }) => method === 'DELETE').length
  const jobs = async () => pluck((await pool.query("select state::text from pgboss.job where name = 'customers' order by 1")).rows, 'state')
  stripe.fail(503)
  await pool.query('select cue.erase_account($1)', [account.id])
  await eventually(async () => (await jobs())[0] === 'retry', 20_000)
  t.ok(deletions() > 0, 'the deletion is retried although the account is gone')
  stripe.fail(null)
  await fn.addJob({ queue: 'customers', data: { customer_id } })
  await eventually(() => stripe.customers.size === 1)
  t.same([...stripe.customers.keys()], [`pgcue-customer-${other.id}`])
  await fn.addJob({ queue: 'customers', data: { customer_id } })
  await eventually(async () => String(await jobs()) === 'completed,completed,retry')
  t.equal(stripe.customers.size, 1, 'a customer already deleted is not a failure')
})
