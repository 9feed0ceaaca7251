/** An account's use of its plan. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { refusals } from '../accounts/admission.ts'
import { upgradeUrl } from '../billing/upgrade-url.ts'
import { ApiError } from '../errors.ts'
import { billingPeriod, projected, share } from './period.ts'
import { type Schedules, scheduledUntil } from './scheduled.ts'
import { Usage } from './schemas.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/usage',
    {
      // Computing schedules may take as long as a list.
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'getUsage',
        summary: 'Get usage against the limits of the plan',
        description: 'With a projection for the end of the month. Limits that the account does not have are null.',
        response: { 200: Usage }
      }
    },
    async request => {
      const now = app.now()
      const usage = await app.fn.readUsage(request.caller)
      if (!usage) throw new ApiError('invalid_api_key', refusals.invalid_api_key) // deleted since the key was checked
      const projected_month_end = projected(usage.executions_used, now)
      const period = billingPeriod(now)
      const end = Date.parse(period.end) + 86_400_000
      const scheduled_until_month_end = await scheduledUntil(usage.schedules as unknown as Schedules, usage.cues_active, +now, end)
      return {
        plan: usage.plan,
        billing_period: period,
        cues: { ...share(usage.cues_used, usage.cue_limit), active: usage.cues_active },
        executions: {
          ...share(usage.executions_used, usage.execution_limit),
          projected_month_end,
          scheduled_until_month_end,
          will_exceed_limit: usage.execution_limit !== null && projected_month_end > usage.execution_limit
        },
        outcomes: { reported: usage.reported, succeeded: usage.succeeded, failed: usage.failed },
        rate_limit: {
          requests_per_minute: usage.requests_per_minute,
          limit: usage.requests_per_minute,
          current_usage: usage.requests_used
        },
        upgrade_url: upgradeUrl(app.config.baseUrl)
      }
    }
  )
}

export default routes
