/** Stripe events: they may arrive twice, late, in any order, or forged. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { mailServer, sendMails } from '../support/mailbox.ts'
import { error } from '../support/setup.ts'
import { billed, eventOf, seconds, signatureOf, subscriptionOf } from '../support/stripe.ts'

t.test('rejects an event with a wrong or an old signature, and changes nothing', async t => {
  const { as, send, paid, plan, clock } = await billed(t)
  const event = paid()
  const body = JSON.stringify(event)
  const { call } = as(null)
  const now = clock.now()
  for (const [name, signature] of Object.entries({
    none: undefined,
    empty: '',
    nonsense: 'hello',
    'another secret': signatureOf(body, now, 'whsec_another'),
    'another body': signatureOf(`${body} `, now),
    old: signatureOf(body, new Date(now.getTime() - 301_000)),
    'no time': signatureOf(body, now).replace(/t=\d+,/, '')
  })) {
    exactly(
      t,
      await call('POST', '/v1/billing/webhook', body, signature === undefined ? {} : { 'stripe-signature': signature }),
      error('validation_error', 400),
      name
    )
  }
  for (const other of ['', '{', 'null', '[]', '5', '{"id": 5}']) {
    exactly(
      t,
      await call('POST', '/v1/billing/webhook', other, { 'stripe-signature': signatureOf(other, now) }),
      error('validation_error', 400),
      `signed, but ${other || 'empty'}`
    )
  }
  t.equal(await plan(), 'free')
  exactly(t, await send(event, { 'content-type': 'text/plain; charset=utf-8' }), { status: 200, body: { received: true } }, 'any type')
  t.equal(await plan(), 'pro')
})

t.test('rejects a signed event of another shape, and changes nothing', async t => {
  const { send, about, paid, plan, customer } = await billed(t)
  const event = about('updated', 'active', 'price_pro_m')
  const subscription = event.data.object
  const failed = { customer, subscription: 'sub_1', next_payment_attempt: seconds + 86_400 }
  const failedWith = (fields: object) => eventOf('invoice.payment_failed', { ...failed, ...fields }, seconds)
  const subscriptionWith = (fields: object) => ({ ...event, data: { object: { ...subscription, ...fields } } })
  for (const odd of [
    { ...event, created: 'xx' },
    { ...event, created: undefined },
    { ...event, created: 1e300 },
    { ...event, id: 'evt_\0' },
    { ...event, id: 'x'.repeat(5000) },
    { ...event, type: 5 },
    subscriptionWith({ id: 'sub_\0' }),
    subscriptionWith({ id: null }),
    subscriptionWith({ customer: { id: 5 } }),
    subscriptionWith({ customer: 'cus_\0' }),
    subscriptionWith({ status: ['active'] }),
    subscriptionWith({ items: { data: [{}] } }),
    subscriptionWith({ items: { data: null } }),
    subscriptionWith({ metadata: 'x' }),
    paid({ subscription: 5 }),
    paid({ customer: { id: '\0' } }),
    paid({ client_reference_id: [], metadata: null }),
    failedWith({ next_payment_attempt: 'abc' }),
    failedWith({ next_payment_attempt: -1e20 }),
    failedWith({ parent: { subscription_details: 'x' } })
  ]) {
    exactly(t, await send(odd), error('validation_error', 400), JSON.stringify(odd).slice(0, 300))
  }
  t.equal(await plan(), 'free')
  exactly(t, await send(event), { status: 200 })
  exactly(t, await send(failedWith({ next_payment_attempt: null, parent: null })), { status: 200 })
  t.equal(await plan(), 'pro')
})

t.test('verifies the signature over the received bytes', async t => {
  const { as, paid, plan, clock } = await billed(t)
  const body = `\n{ "unused": 1.0, ${JSON.stringify(paid()).slice(1)}\n`
  exactly(t, await as(null).call('POST', '/v1/billing/webhook', body, { 'stripe-signature': signatureOf(body, clock.now()) }), {
    status: 200
  })
  t.equal(await plan(), 'pro')
})

t.test('a paid checkout sets the plan, whose limits apply at once', async t => {
  const { send, paid, get, plan, pool, account } = await billed(t)
  exactly(t, await send(paid({ payment_status: 'unpaid' })), { status: 200 })
  exactly(t, await send(paid({ mode: 'payment', subscription: null })), { status: 200 })
  t.equal(await plan(), 'free')
  await pool.query("insert into cue.usage_counters (account_id, month, slot, executions) values ($1, '2030-01-01', 0, 301)", [account.id])
  await pool.query('update cue.accounts set limit_reached_at = $2 where id = $1', [account.id, '2030-01-10T00:00:00Z'])
  exactly(t, await send(paid()), { status: 200, body: { received: true } })
  exactly(t, await get('/v1/auth/me'), { plan: 'pro', active_cue_limit: 100, monthly_execution_limit: 5000, rate_limit_per_minute: 200 })
  exactly(t, (await pool.query('select limit_reached_at from cue.accounts where id = $1', [account.id])).rows, [{ limit_reached_at: null }])
  exactly(t, (await get('/v1/auth/audit')).events[0], { event: 'plan.changed', actor: 'stripe', detail: { from: 'free', to: 'pro' } })
})

t.test('each subscription status sets its plan, or none', async t => {
  const { send, about, plan } = await billed(t)
  for (const [status, price, expected] of [
    ['incomplete', 'price_pro_m', 'free'],
    ['active', 'price_pro_m', 'pro'],
    ['active', 'price_scale_a', 'scale'],
    ['past_due', 'price_scale_a', 'scale'],
    ['unpaid', 'price_scale_a', 'free'],
    ['trialing', 'price_pro_a', 'pro'],
    ['paused', 'price_pro_a', 'free'],
    ['active', 'price_scale_m', 'scale']
  ] as const) {
    await send(about('updated', status, price))
    t.equal(await plan(), expected, `${status} ${price}`)
  }
  await send(about('deleted', 'canceled', 'price_scale_m'))
  t.equal(await plan(), 'free')
})

t.test('with two subscriptions, the larger plan applies', async t => {
  const { send, about, plan } = await billed(t)
  await send(about('updated', 'active', 'price_scale_m', { id: 'sub_1' }))
  await send(about('created', 'active', 'price_pro_m', { id: 'sub_2' }))
  t.equal(await plan(), 'scale')
  await send(about('deleted', 'canceled', 'price_scale_m', { id: 'sub_1' }))
  t.equal(await plan(), 'pro')
})

t.test('applies each event once, even if it arrives many times at once', async t => {
  const { send, about, plan, get, mails } = await billed(t)
  const up = about('updated', 'active', 'price_scale_m')
  exactly(t, await Promise.all(Array.from({ length: 6 }, () => send(up))), Array(6).fill({ status: 200 }))
  const down = about('updated', 'active', 'price_pro_m')
  await send(down)
  await send(up)
  t.equal(await plan(), 'pro')
  t.equal((await get('/v1/auth/audit')).events.filter(({ event }: { event: string }) => event === 'plan.changed').length, 2)
  t.equal((await mails('downgrade')).length, 1)
})

t.test('an older event changes nothing, whatever the order of arrival', async t => {
  const { send, about, paid, plan } = await billed(t)
  const history = [
    paid(),
    about('updated', 'active', 'price_pro_m'),
    about('updated', 'active', 'price_scale_m'),
    about('updated', 'past_due', 'price_scale_m'),
    about('deleted', 'canceled', 'price_scale_m')
  ]
  const [checkout, first, second, third, deleted] = history
  for (const event of [second!, first!, checkout!]) await send(event)
  t.equal(await plan(), 'scale', 'the second arrived first')
  await send(deleted!)
  t.equal(await plan(), 'free')
  for (const event of [third!, ...history]) await send(event)
  t.equal(await plan(), 'free', 'cancelled is final')
})

t.test('asks Stripe if events of the same second contradict each other', async t => {
  const { send, about, plan, stripe } = await billed(t)
  const created = seconds + 50
  stripe.subscriptions.set('sub_1', { status: 'active', price: 'price_scale_m' })
  await send(about('updated', 'active', 'price_scale_m', { created }))
  await send(about('created', 'incomplete', 'price_pro_m', { created }))
  t.equal(await plan(), 'scale', 'the later one was sent first')
  t.equal(stripe.asked.filter(({ path }) => path === '/v1/subscriptions/sub_1').length, 1)
  await send(about('updated', 'active', 'price_scale_m', { created }))
  t.equal(stripe.asked.filter(({ path }) => path === '/v1/subscriptions/sub_1').length, 1, 'an event that agrees causes no request')
  stripe.fail(500)
  const event = about('updated', 'active', 'price_pro_m', { created })
  exactly(t, await send(event), error('stripe_error', 502))
  stripe.fail(null)
  stripe.subscriptions.set('sub_1', { status: 'active', price: 'price_pro_m' })
  exactly(t, await send(event), { status: 200 })
  t.equal(await plan(), 'pro', 'sent again, it counts')
})

t.test('accepts an event about an unknown customer, and changes nothing', async t => {
  const { send, about, plan, clock, register, as } = await billed(t)
  const other = await register()
  const at = Math.floor(clock.now().getTime() / 1000)
  const strangers = subscriptionOf('sub_9', 'cus_stranger', { status: 'active', price: 'price_pro_m' })
  exactly(t, await send(eventOf('customer.subscription.updated', strangers, at)), { status: 200 })
  exactly(t, await send(eventOf('customer.subscription.updated', { ...strangers, metadata: { account_id: "' or true --" } }, at)), {
    status: 200
  })
  exactly(t, await send(eventOf('customer.subscription.deleted', strangers, at)), { status: 200 })
  exactly(t, await send(eventOf('invoice.payment_failed', { customer: 'cus_stranger' }, at)), { status: 200 })
  exactly(t, await send(eventOf('charge.succeeded', { id: 'ch_1' }, at)), { status: 200 })
  exactly(t, await send(about('updated', 'active', 'price_of_another_product')), { status: 200 })
  t.equal(await plan(), 'free')
  t.equal((await as(other).get('/v1/auth/me')).plan, 'free')
})

t.test('refuses an event with a price missing from the settings, so that Stripe sends it again', async t => {
  const log: object[] = []
  const logStream = { write: (line: string) => void log.push(JSON.parse(line)) }
  const { send, account, customer, plan } = await billed(t, { LOG_LEVEL: 'error' }, { logStream })
  const subscription = subscriptionOf('sub_1', customer, { status: 'active', price: 'price_new' }, { account_id: account.id })
  exactly(t, await send(eventOf('customer.subscription.updated', subscription, seconds)), error('billing_not_configured', 503))
  t.equal(await plan(), 'free')
  exactly(t, log, [{ subscription_id: 'sub_1', price: 'price_new' }], 'the operator finds it in the log')
})

t.test('a checkout by a customer created elsewhere belongs to the account it names', async t => {
  const { send, stripe, register, as, clock, about } = await billed(t)
  const account = await register()
  const at = Math.floor(clock.now().getTime() / 1000)
  stripe.subscriptions.set('sub_7', { status: 'active', price: 'price_scale_m' })
  await send(
    eventOf(
      'checkout.session.completed',
      { customer: 'cus_7', subscription: 'sub_7', client_reference_id: account.id, payment_status: 'paid' },
      at
    )
  )
  t.equal((await as(account).get('/v1/auth/me')).plan, 'scale', 'its plan is the one Stripe reports')
  await send(eventOf('customer.subscription.deleted', subscriptionOf('sub_7', 'cus_7', { status: 'canceled', price: 'price_scale_m' }), at))
  t.equal((await as(account).get('/v1/auth/me')).plan, 'free')
  await send(about('updated', 'active', 'price_pro_m'))
  t.equal((await as(account).get('/v1/auth/me')).plan, 'free', "another account's customer changes nothing here")
})

t.test('sends one mail about a failed payment, and keeps the plan while Stripe retries it', async t => {
  const service = await billed(t)
  const { send, paid, plan, mails, customer, account, about } = service
  await send(paid())
  const invoice = { id: 'in_1', object: 'invoice', customer, subscription: 'sub_1', next_payment_attempt: seconds + 86_400 }
  const event = eventOf('invoice.payment_failed', invoice, seconds + 20)
  for (let n = 0; n < 3; n++) exactly(t, await send(event), { status: 200 })
  exactly(t, await mails('payment_failed'), [{ account_id: account.id, next_attempt_at: /^2030-01-16T12:00:00/ }])
  t.equal(await plan(), 'pro')
  const server = await mailServer(t)
  await sendMails(service, { smtpUrl: server.url })
  const mail = server.mails.find(
    ({ recipients, subject }) => recipients[0] === account.email && subject === 'Payment for your pro plan failed'
  )
  t.match(mail?.text, /retry it on 16 January 2030, 12:00 UTC/)
  t.same(mail?.links, ['https://cue.example.com/dashboard#billing'])
  await send(eventOf('invoice.payment_failed', { ...invoice, next_payment_attempt: null }, seconds + 30))
  await send(about('deleted', 'canceled', 'price_pro_m', { created: seconds + 40 }))
  exactly(t, await sendMails(service, { smtpUrl: server.url }), { errors: [] })
  t.equal(server.mails.filter(({ subject }) => /^Payment/.test(subject)).length, 1, 'no mail once the plan is lost')
})
