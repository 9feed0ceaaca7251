/** Usage against the limits of the plan, and how to change it. */
import type { Usage } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useRead } from '../query.ts'
import { isSold, serviceRoot } from '../root.ts'
import { useMay } from '../session.ts'
import { Badge, Button, count, Facts, Figure, Panel } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { Page } from '../ui/page.tsx'

type Share = { used: number; limit: number | null; percent_used: number }

const Meter = ({ name, share: { used, limit, percent_used }, note }: { name: string; share: Share; note: string }) => {
  const tone = percent_used >= 100 ? 'bad' : percent_used >= 80 ? 'warn' : 'good'
  return (
    <Figure name={name} value={limit === null ? count(used) : `${count(used)} of ${count(limit)}`} note={note}>
      {limit !== null && <meter class={tone} min={0} max={100} value={percent_used} aria-label={`${name}: ${percent_used}% used`} />}
    </Figure>
  )
}

export const UsagePage = () => {
  const read = useRead<Usage>('/v1/usage')
  return (
    <Page title="Usage and plan" read={read} about={read.data && <Badge tone="info">{`${read.data.plan} plan`}</Badge>}>
      {({ plan, executions, cues, billing_period: { start, end, days_remaining }, outcomes, rate_limit }) => {
        const { projected_month_end, will_exceed_limit, scheduled_until_month_end } = executions
        const excess = will_exceed_limit ? ', which is more than the limit' : ''
        const note =
          `If the rest of the month is like its days so far, ${count(projected_month_end)} by its end${excess}. ` +
          `The schedules of the active cues will add about ${count(scheduled_until_month_end)}.`
        const requests =
          rate_limit.limit === null ? 'no limit' : `${count(rate_limit.current_usage)} of ${count(rate_limit.limit)} used from browsers`
        return (
          <div class="stack">
            <dl class="figures">
              <Meter name="Executions this month" share={executions} note={note} />
              <Meter name="Cues" share={cues} note={`${count(cues.active)} active; paused cues count too.`} />
            </dl>
            <Panel title="This billing period">
              <Facts
                items={[
                  ['Period', `${start} to ${end}, ${days_remaining} days left`],
                  ['Outcomes reported', count(outcomes.reported)],
                  ['Succeeded', count(outcomes.succeeded)],
                  ['Failed', count(outcomes.failed)],
                  ['Requests per minute', requests]
                ]}
              />
            </Panel>
            <Plan current={plan} />
          </div>
        )
      }}
    </Page>
  )
}

const Plan = ({ current }: { current: string }) => {
  const mayBuy = useMay('account')
  const leave = (path: string, body?: object) =>
    void act(async () => {
      const { checkout_url, portal_url } = await post<{ checkout_url?: string; portal_url?: string }>(path, body)
      location.href = (checkout_url ?? portal_url)!
    })
  const choose = (plan: string) => leave('/v1/billing/checkout', { plan, interval: 'monthly' })
  let how = '. The operator of this service sets plans and limits.'
  if (isSold && mayBuy) how = ', then choose one. You pay on Stripe’s pages.'
  else if (isSold) how = '. To change it, sign in with a key that has the account scope, or with an email link.'
  return (
    <Panel title={isSold ? 'Change the plan' : 'Plan and limits'}>
      <p>
        <a href={`${serviceRoot}/plans`}>Compare the plans</a>
        {how}
      </p>
      {isSold && mayBuy && (
        <div class="row">
          {['pro', 'scale']
            .filter(plan => plan !== current)
            .map(plan => (
              <Button key={plan} label={`Choose ${plan}`} kind="main" onClick={() => choose(plan)} />
            ))}
          {current !== 'free' && <Button label="Payment and invoices" onClick={() => leave('/v1/billing/portal')} />}
        </div>
      )}
    </Panel>
  )
}
