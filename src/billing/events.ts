/** Handles Stripe's events. They arrive twice, late and in any order; the SQL functions decide which one applies. */
import type { FastifyBaseLogger } from 'fastify'
import type { Stripe } from 'stripe'
import type { Config } from '../config.ts'
import type { Functions } from '../database/functions.ts'
import { unavailable } from '../errors.ts'
import { isMissing, notConfigured, type StripeClient } from './stripe.ts'

type SubscriptionEvent = Parameters<Functions['applySubscription']>[0]
type Paid = SubscriptionEvent['plan']
type State = { plan: Paid; status: string }
type Options = {
  config: Config
  fn: Pick<Functions, 'applySubscription' | 'noteFailedPayment'>
  stripe: StripeClient
  log: Pick<FastifyBaseLogger, 'error'>
}

const rounds = 5
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Creates the handler of one event with a verified signature. It resolves to what was done, for the log, and rejects if Stripe should send
 * the event again.
 */
export const createEvents = ({ config, fn, stripe, log }: Options) => {
  const plans = new Map(
    Object.entries(config.stripePrices).flatMap(([plan, prices]) => Object.values(prices).map(price => [price, plan as Paid] as const))
  )
  const planOf = ({ items }: Stripe.Subscription): Paid | undefined =>
    items?.data.map(({ price }) => plans.get(price.id)).find(plan => plan !== undefined)

  /** Stripe resends the event for three days, in which the setting may be corrected. */
  const unpriced = ({ id, items }: Stripe.Subscription): never => {
    const price = items?.data[0]?.price.id
    log.error({ subscription_id: id, price }, 'price missing from STRIPE_PRICES')
    throw notConfigured(`STRIPE_PRICES has no plan for price ${price ?? '(the subscription has no items)'}.`)
  }

  /** Fetches the current state of a subscription; undefined if Stripe doesn't know it. */
  const ask = async (id: string): Promise<State | undefined> => {
    const subscription = await stripe.ask(({ subscriptions }) =>
      subscriptions.retrieve(id).catch(error => {
        if (!isMissing(error)) throw error
        return undefined
      })
    )
    return subscription && { plan: planOf(subscription) ?? unpriced(subscription), status: subscription.status }
  }

  /**
   * Two events of the same second may contradict each other. Then the current state is fetched, and applied unless another event came in
   * between.
   */
  const apply = async (event: SubscriptionEvent): Promise<string> => {
    let current = event
    for (let round = 0; round < rounds; round++) {
      const { result, version } = await fn.applySubscription(current)
      if (result !== 'unclear') return result
      current = { ...event, ...(await ask(event.subscription_id)), version: version! }
    }
    throw unavailable()
  }

  const onCheckout = async (event: Stripe.Event, session: Stripe.Checkout.Session): Promise<string> => {
    const { subscription, customer, metadata, client_reference_id, payment_status } = session
    if (!subscription || !customer || payment_status === 'unpaid') return 'ignored'
    const subscription_id = idOf(subscription)
    const named = metadata?.plan
    const state = named === 'pro' || named === 'scale' ? { plan: named as Paid, status: 'active' } : await ask(subscription_id)
    if (!state) return 'ignored'
    const account_id = accountIn(metadata?.account_id ?? client_reference_id)
    return apply({ ...about(event), ...state, subscription_id, customer_id: idOf(customer), account_id, first: true })
  }

  const onSubscription = async (event: Stripe.Event, subscription: Stripe.Subscription): Promise<string> => {
    const { id, customer, metadata } = subscription
    const status = event.type === 'customer.subscription.deleted' ? 'canceled' : subscription.status
    const account_id = accountIn(metadata?.account_id)
    const planName = planOf(subscription)
    // Belongs to another product of the same Stripe account, unless our own checkout created it.
    if (!planName && status !== 'canceled' && account_id === null) return 'ignored'
    // The plan of a cancelled subscription doesn't matter.
    const plan = planName ?? (status === 'canceled' ? 'pro' : unpriced(subscription))
    return apply({ ...about(event), plan, status, subscription_id: id, customer_id: idOf(customer), account_id })
  }

  const onFailedPayment = async (event: Stripe.Event, invoice: Stripe.Invoice): Promise<string> => {
    if (!invoice.customer) return 'ignored'
    const next_attempt_at = invoice.next_payment_attempt ? new Date(invoice.next_payment_attempt * 1000) : null
    const told = await fn.noteFailedPayment({
      ...about(event),
      customer_id: idOf(invoice.customer),
      subscription_id: subscriptionIn(invoice),
      next_attempt_at
    })
    return told ? 'applied' : 'replayed or unknown'
  }

  return async (event: Stripe.Event): Promise<string> => {
    switch (event.type) {
      case 'checkout.session.completed':
        return onCheckout(event, event.data.object)
      case 'customer.subscription.created':
      case 'customer.subscription.updated':
      case 'customer.subscription.deleted':
        return onSubscription(event, event.data.object)
      case 'invoice.payment_failed':
        return onFailedPayment(event, event.data.object)
      default:
        return 'ignored'
    }
  }
}

const about = (event: Stripe.Event) => ({ event_id: event.id, type: event.type, at: new Date(event.created * 1000) })

const idOf = (thing: string | { id: string }): string => (typeof thing === 'string' ? thing : thing.id)

const accountIn = (id: string | null | undefined): string | null => (id && uuid.test(id) ? id : null)

/** Also where API versions before 2025 had it: each webhook endpoint has its own API version. */
const subscriptionIn = (invoice: Stripe.Invoice): string | null => {
  const { subscription = invoice.parent?.subscription_details?.subscription } = invoice as { subscription?: string | { id: string } | null }
  return subscription ? idOf(subscription) : null
}
