/** Buying a plan: links to Stripe's pages, and the webhook for Stripe's events. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import type { Caller } from '../accounts/admission.ts'
import { refusals } from '../accounts/admission.ts'
import { ApiError } from '../errors.ts'
import { sendPage } from '../pages/page.ts'
import { createEvents } from './events.ts'
import { plansPage } from './page.ts'
import * as schemas from './schemas.ts'
import { createStripe, notConfigured, type StripeClient } from './stripe.ts'
import { upgradeUrl } from './upgrade-url.ts'

/** Events contain whole objects. */
export const MAX_EVENT_BODY = 256 * 1024

const routes: FastifyPluginAsyncTypebox = async app => {
  const { config, fn } = app
  const stripe = createStripe(config)
  const back = upgradeUrl(config.baseUrl)

  app.get('/plans', { config: { public: true }, schema: { hide: true } }, async (_, reply) =>
    sendPage(reply, 200, plansPage({ plans: config.plans, baseUrl: config.baseUrl, isSold: Boolean(config.stripeSecretKey) }))
  )

  app.post(
    '/v1/billing/checkout',
    {
      config: { scope: 'account', errors: ['billing_not_configured', 'no_stripe_customer', 'stripe_error'] },
      schema: {
        operationId: 'createCheckout',
        summary: 'Buy a plan',
        description: 'Nothing changes until the payment has arrived.',
        body: schemas.Checkout,
        response: { 200: schemas.CheckoutUrl }
      }
    },
    async request => {
      const { plan, interval } = request.body
      const price = config.stripePrices[plan]?.[interval]
      if (!price) throw notConfigured()
      const { subscription_id, ...account } = await accountOf(app, request.caller)
      const customer = account.customer_id ?? (await makeCustomer(app, stripe, request.caller, account.email))
      // With a subscription, the customer changes that one: a second would be charged in addition.
      const { url } = subscription_id
        ? await stripe.ask(({ billingPortal }) =>
            billingPortal.sessions.create({
              customer,
              return_url: back,
              flow_data: { type: 'subscription_update', subscription_update: { subscription: subscription_id } }
            })
          )
        : await stripe.ask(({ checkout }) =>
            checkout.sessions.create({
              mode: 'subscription',
              customer,
              client_reference_id: request.caller.account_id,
              line_items: [{ price, quantity: 1 }],
              metadata: { account_id: request.caller.account_id, plan, interval },
              subscription_data: { metadata: { account_id: request.caller.account_id } },
              success_url: back,
              cancel_url: back
            })
          )
      return { checkout_url: url! }
    }
  )

  app.post(
    '/v1/billing/portal',
    {
      config: { scope: 'account', errors: ['billing_not_configured', 'no_stripe_customer', 'stripe_error'] },
      schema: {
        operationId: 'createPortalLink',
        summary: 'Get a link for managing payment, invoices and the subscription',
        description: "Stripe's page for the account, valid for a short time.",
        response: { 200: schemas.PortalUrl }
      }
    },
    async request => {
      if (!config.stripeSecretKey) throw notConfigured()
      const { customer_id: customer } = await accountOf(app, request.caller)
      if (!customer) throw new ApiError('no_stripe_customer', 'The account has no purchases yet. Start with POST /v1/billing/checkout.')
      const { url } = await stripe.ask(({ billingPortal }) => billingPortal.sessions.create({ customer, return_url: back }))
      return { portal_url: url }
    }
  )

  await app.register(async webhook => {
    // The signature covers the raw bytes.
    webhook.removeAllContentTypeParsers()
    webhook.addContentTypeParser('*', { parseAs: 'buffer' }, async (_: unknown, body: Buffer) => body)
    const handle = createEvents({ config, fn, stripe, log: app.log })

    webhook.post(
      '/v1/billing/webhook',
      {
        config: {
          exempt: true,
          anyQuery: () => true,
          errors: ['validation_error', 'billing_not_configured', 'stripe_error'],
          rawBody: true
        },
        bodyLimit: MAX_EVENT_BODY,
        schema: {
          operationId: 'receiveStripeEvent',
          summary: 'Receive a signed Stripe event',
          description: 'Called by Stripe, and checked by `Stripe-Signature`.',
          response: { 200: schemas.Received }
        }
      },
      async request => {
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
        const event = await stripe.readEvent(body, String(request.headers['stripe-signature'] ?? ''), app.now().getTime())
        const result = await handle(event)
        request.log.info({ event_id: event.id, type: event.type, result }, 'stripe event')
        return { received: true }
      }
    )
  })
}

export default routes

const accountOf = async ({ fn }: Pick<FastifyInstance, 'fn'>, caller: Caller) => {
  const account = await fn.billingAccount(caller)
  if (!account) throw new ApiError('invalid_api_key', refusals.invalid_api_key) // deleted since the key was checked
  return account
}

/** Creates the account's Stripe customer. The idempotency key prevents a second one, even from concurrent requests. */
const makeCustomer = async ({ fn }: Pick<FastifyInstance, 'fn'>, stripe: StripeClient, caller: Caller, email: string): Promise<string> => {
  const { account_id } = caller
  const { id } = await stripe.ask(({ customers }) =>
    customers.create({ email, metadata: { account_id } }, { idempotencyKey: `pgcue-customer-${account_id}` })
  )
  return fn.setCustomer({ customer_id: id, ...caller })
}
