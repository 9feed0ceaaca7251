/** A server with the part of Stripe's API that this service uses, and events signed like Stripe's. */
import { createHmac, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { build } from './setup.ts'

const webhookSecret = 'whsec_a_secret_only_for_tests'
export const prices = {
  pro: { monthly: 'price_pro_m', annual: 'price_pro_a' },
  scale: { monthly: 'price_scale_m', annual: 'price_scale_a' }
}

type Asked = { method: string; path: string; form: Record<string, string>; key: string | undefined }
type State = { status: string; price: string }

export const standIn = async (t: Test) => {
  const asked: Asked[] = []
  const customers = new Map<string, string>()
  const subscriptions = new Map<string, State>()
  let failing: { status: number; error: object } | null = null
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const [path = ''] = (request.url ?? '').split('?')
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
    const key = request.headers['idempotency-key'] as string | undefined
    asked.push({ method: request.method ?? '', path, form, key })
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_1' })
      response.end(JSON.stringify(body))
    }
    const missing = (param: string) =>
      answer(404, { error: { type: 'invalid_request_error', code: 'resource_missing', param, message: 'No such thing' } })
    if (request.headers.authorization !== 'Bearer sk_test_1')
      return answer(401, { error: { type: 'invalid_request_error', message: 'no key' } })
    if (failing) return answer(failing.status, { error: failing.error })
    if (form.customer && ![...customers.values()].includes(form.customer)) return missing('customer')
    if (path === '/v1/customers') {
      const id = customers.get(key!) ?? `cus_${randomUUID()}`
      customers.set(key!, id)
      return answer(200, { id, object: 'customer' })
    }
    if (path === '/v1/checkout/sessions')
      return answer(200, { id: 'cs_1', object: 'checkout.session', url: 'https://checkout.example.com/cs_1' })
    if (path === '/v1/billing_portal/sessions')
      return answer(200, { id: 'bps_1', object: 'billing_portal.session', url: 'https://portal.example.com/1' })
    const [, kind, id] = /^\/v1\/(customers|subscriptions)\/(\w[\w-]*)$/.exec(path) ?? []
    if (kind === 'customers' && request.method === 'DELETE') {
      const [found] = [...customers].find(([, customer]) => customer === id) ?? []
      if (!found) return missing('id')
      customers.delete(found)
      return answer(200, { id, object: 'customer', deleted: true })
    }
    const state = kind === 'subscriptions' && subscriptions.get(id!)
    return state ? answer(200, subscriptionOf(id!, 'cus_any', state)) : missing('id')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    asked,
    customers,
    /** Stripe's state of a subscription. */
    subscriptions,
    fail: (status: number | null, error: object = { type: 'api_error', message: 'down' }) => {
      failing = status === null ? null : { status, error }
    },
    /** Environment of a service with billing. */
    env: {
      STRIPE_SECRET_KEY: 'sk_test_1',
      STRIPE_WEBHOOK_SECRET: webhookSecret,
      STRIPE_API_BASE: url,
      STRIPE_PRICES: JSON.stringify(prices),
      BASE_URL: 'https://cue.example.com'
    }
  }
}

export const subscriptionOf = (id: string, customer: string, { status, price }: State, metadata: object = {}) => ({
  id,
  object: 'subscription',
  customer,
  status,
  metadata,
  items: { object: 'list', data: [{ id: 'si_1', object: 'subscription_item', price: { id: price, object: 'price' } }] }
})

/** @param created epoch seconds */
export const eventOf = (type: string, object: object, created: number, id = `evt_${randomUUID()}`) => ({
  id,
  object: 'event',
  api_version: '2026-10-28.endive',
  created,
  type,
  data: { object }
})

/** The signature header that Stripe sends with a body. */
export const signatureOf = (body: string, at: Date, secret = webhookSecret): string => {
  const timestamp = Math.floor(at.getTime() / 1000)
  return `t=${timestamp},v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')},v0=ignored`
}

export const noon = '2030-01-15T12:00:00Z'
export const seconds = Date.parse(noon) / 1000

/** A service with billing, an account that is a customer, and Stripe's events about it. */
export const billed = async (t: Test, env: Record<string, string> = {}, options: object = {}) => {
  const stripe = await standIn(t)
  const service = await build(t, noon, { env: { ...stripe.env, ...env }, ...options })
  const { as, clock, pool, post, get, account } = service
  await post('/v1/billing/checkout', { plan: 'pro', interval: 'monthly' })
  const [customer] = [...stripe.customers.values()]

  const send = (event: object, headers: Record<string, string> = {}) => {
    const body = JSON.stringify(event)
    return as(null).call('POST', '/v1/billing/webhook', body, { 'stripe-signature': signatureOf(body, clock.now()), ...headers })
  }
  let at = seconds
  const about = (type: string, status: string, price: string, { id = 'sub_1', created = at++, event_id = `evt_${randomUUID()}` } = {}) =>
    eventOf(`customer.subscription.${type}`, subscriptionOf(id, customer!, { status, price }), created, event_id)
  const paid = (fields: object = {}, created = at++) =>
    eventOf(
      'checkout.session.completed',
      {
        id: 'cs_1',
        object: 'checkout.session',
        mode: 'subscription',
        customer,
        subscription: 'sub_1',
        payment_status: 'paid',
        client_reference_id: account.id,
        metadata: { account_id: account.id, plan: 'pro', interval: 'monthly' },
        ...fields
      },
      created
    )
  const plan = async (): Promise<string> => (await get('/v1/auth/me')).plan
  const mails = async (kind: string) => {
    const { rows } = await pool.query("select data from pgboss.job where name = 'mails' and data ->> 'kind' = $1 order by created_on", [
      kind
    ])
    return rows.map(row => row.data)
  }
  return { ...service, stripe, customer: customer!, send, about, paid, plan, mails }
}
