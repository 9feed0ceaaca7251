/** Usage against the limits of the plan, and how to change it. */

import type { Usage } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useRead } from '../query.ts'
import { isSold, serviceRoot } from '../root.ts'
import { useMay } from '../session.ts'
import { Badge, Button, count, Facts, Loading, Panel, Problem } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { Page } from '../ui/frame.tsx'

type Share = { used: number; limit: number | null; percent_used: number }

const Meter = ({ name, share: { used, limit, percent_used }, note }: { name: string; share: Share; note: string }) => {
  const tone = percent_used >= 100 ? 'bad' : percent_used >= 80 ? 'warn' : 'good'
  return (
    <div class="usage">
      <h2>{name}</h2>
      <p class="usage-value">
        {count(used)}
        <span class="soft">{limit === null ? ', no limit' : ` of ${count(limit)}`}</span>
      </p>
      {limit !== null && <meter class={tone} min={0} max={100} value={percent_used} aria-label={`${name}: ${percent_used}% used`} />}
      <p class="hint">{note}</p>
    </div>
  )
}

export const UsagePage = () => {
  const read = useRead<Usage>('/v1/usage')
  const mayBuy = useMay('account')
  const { data } = read
  const leave = (path: string, body?: object) =>
    act(async () => {
      const { checkout_url, portal_url } = await post<{ checkout_url?: string; portal_url?: string }>(path, body)
      location.href = (checkout_url ?? portal_url)!
    })
  return (
    <Page title="Usage and plan" read={read} about={data && <Badge tone="info">{`${data.plan} plan`}</Badge>}>
      <Problem failure={read.failure} />
      {!data ? (
        !read.failure && <Loading />
      ) : (
        <>
          <div class="usages">
            <Meter
              name="Executions this month"
              share={data.executions}
              note={
                data.executions.will_exceed_limit
                  ? `At this rate, ${count(data.executions.projected_month_end)} by the end of the month, which is more than the limit.`
                  : `At this rate, ${count(data.executions.projected_month_end)} by the end of the month.`
              }
            />
            <Meter name="Cues" share={data.cues} note={`${count(data.cues.active)} active; paused cues count too.`} />
          </div>
          <Panel title="This billing period">
            <Facts
              items={[
                ['Period', `${data.billing_period.start} to ${data.billing_period.end}, ${data.billing_period.days_remaining} days left`],
                ['Outcomes reported', count(data.outcomes.reported)],
                ['Succeeded', count(data.outcomes.succeeded)],
                ['Failed', count(data.outcomes.failed)],
                [
                  'Requests per minute',
                  data.rate_limit.limit === null
                    ? 'no limit'
                    : `${count(data.rate_limit.current_usage)} of ${count(data.rate_limit.limit)} used from browsers`
                ]
              ]}
            />
          </Panel>
          <Panel title={isSold ? 'Change the plan' : 'Plan and limits'}>
            <p>
              <a href={`${serviceRoot}/plans`}>Compare the plans</a>
              {!isSold
                ? '. The operator of this service sets plans and limits.'
                : mayBuy
                  ? ', then choose one. You pay on Stripe’s pages.'
                  : '. To change it, sign in with a key that has the account scope, or with an email link.'}
            </p>
            {isSold && mayBuy && (
              <div class="actions left">
                {['pro', 'scale']
                  .filter(plan => plan !== data.plan)
                  .map(plan => (
                    <Button
                      key={plan}
                      label={`Choose ${plan}`}
                      kind="main"
                      onClick={() => void leave('/v1/billing/checkout', { plan, interval: 'monthly' })}
                    />
                  ))}
                {data.plan !== 'free' && <Button label="Payment and invoices" onClick={() => void leave('/v1/billing/portal')} />}
              </div>
            )}
          </Panel>
        </>
      )}
    </Page>
  )
}
