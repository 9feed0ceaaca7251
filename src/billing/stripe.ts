/** The Stripe client. */
import type { Stripe } from 'stripe'
import { type Config, version } from '../config.ts'
import { ApiError } from '../errors.ts'

const timeoutMs = 10_000
const repeats = 2

/** Loaded on first use: the package takes 19 MB and a third of a second. */
const load = async ({ stripeSecretKey, stripeApiBase }: Config): Promise<Stripe> => {
  const { default: Stripe } = await import('stripe')
  const base = stripeApiBase === null ? null : new URL(stripeApiBase)
  return new Stripe(stripeSecretKey!, {
    ...(base && {
      host: base.hostname,
      port: base.port || (base.protocol === 'https:' ? 443 : 80),
      protocol: base.protocol.slice(0, -1) as 'https'
    }),
    timeout: timeoutMs,
    maxNetworkRetries: repeats,
    telemetry: false,
    appInfo: { name: 'pgcue', version }
  })
}

export type StripeClient = ReturnType<typeof createStripe>

/**
 * Creates the client; use it as `ask(stripe => …)`.
 * @throws {ApiError} `billing_not_configured`; `no_stripe_customer` if the customer was deleted at Stripe; `stripe_error` for any other
 * failure
 */
export const createStripe = (config: Config) => {
  let client: Promise<Stripe> | undefined

  const connect = (): Promise<Stripe> => {
    if (!config.stripeSecretKey || !config.stripeWebhookSecret) throw notConfigured()
    client ??= load(config)
    return client
  }

  return {
    ask: async <T>(question: (stripe: Stripe) => Promise<T>): Promise<T> => {
      const stripe = await connect()
      try {
        return await question(stripe)
      } catch (error) {
        throw isMissing(error, 'customer')
          ? new ApiError('no_stripe_customer', 'The billing customer of this account was deleted. Contact support.', { cause: error })
          : new ApiError('stripe_error', 'The payment provider failed to respond correctly. Nothing was changed; try again later.', {
              cause: error
            })
      }
    },

    /**
     * Parses a webhook's body and verifies its signature.
     * @param now epoch milliseconds
     * @throws {ApiError} `validation_error` unless Stripe signed it within the last five minutes
     */
    readEvent: async (body: Buffer, signature: string, now: number): Promise<Stripe.Event> => {
      const stripe = await connect()
      try {
        const event = stripe.webhooks.constructEvent(body, signature, config.stripeWebhookSecret!, undefined, undefined, now)
        // Imported here because the engine also loads this module, and reads no events.
        const { isEvent } = await import('./event-schemas.ts')
        if (!isEvent(event)) throw new Error('signed body is not an event')
        return event
      } catch (error) {
        throw new ApiError('validation_error', 'The signature is missing, wrong or too old, or the body is not an event.', { cause: error })
      }
    }
  }
}

export const notConfigured = (message = 'Billing is not configured on this service: its operator sets plans and limits.') =>
  new ApiError('billing_not_configured', message)

/** Whether Stripe responded that an object doesn't exist; `param` restricts this to one named by that parameter. */
export const isMissing = (error: unknown, param?: string): boolean => {
  const { code, param: named } = (error ?? {}) as { code?: string; param?: string }
  return code === 'resource_missing' && (param === undefined || named === param)
}
