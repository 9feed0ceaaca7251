/** Deletes Stripe customers whose account is gone, which cancels their subscriptions. */
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import type { Jobs } from '../jobs/boss.ts'
import { createStripe, isMissing } from './stripe.ts'

type Options = { jobs: Jobs; config: Config; log: FastifyBaseLogger }

export const startCustomers = async ({ jobs, config, log }: Options): Promise<void> => {
  const stripe = createStripe(config)
  await jobs.work<{ customer_id: string }>('customers', async ({ customer_id }) => {
    await stripe.ask(({ customers }) =>
      customers.del(customer_id).catch(error => {
        if (!isMissing(error)) throw error
      })
    )
    log.info({ customer_id }, 'customer deleted at Stripe')
  })
}
