/** Usage against the limits of the plan, and how to change it. */

import type { Usage } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { isSold, serviceRoot } from '../root.ts'
import { useMay } from '../session.ts'
import { Badge, Button, count, Facts, Loading, Panel, Problem } from '../ui/basics.ts'
import { act } from '../ui/dialog.ts'
import { Page } from '../ui/frame.ts'

type Share = { used: number; limit: number | null; percent_used: number }

const Meter = ({ name, share: { used, limit, percent_used }, note }: { name: string; share: Share; note: string }) => {
  const tone = percent_used >= 100 ? 'bad' : percent_used >= 80 ? 'warn' : 'good'
  return h(
    'div',
    { class: 'usage' },
    h('h2', {}, name),
    h('p', { class: 'usage-value' }, count(used), h('span', { class: 'soft' }, limit === null ? ', no limit' : ` of ${count(limit)}`)),
    limit !== null && h('meter', { class: tone, min: 0, max: 100, value: percent_used, 'aria-label': `${name}: ${percent_used}% used` }),
    h('p', { class: 'hint' }, note)
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
  return h(
    Page,
    { title: 'Usage and plan', read, about: data && h(Badge, { tone: 'info' }, `${data.plan} plan`) },
    h(Problem, { failure: read.failure }),
    !data
      ? !read.failure && h(Loading, {})
      : [
          h(
            'div',
            { key: 'meters', class: 'usages' },
            h(Meter, {
              name: 'Executions this month',
              share: data.executions,
              note: data.executions.will_exceed_limit
                ? `At this rate, ${count(data.executions.projected_month_end)} by the end of the month, which is more than the limit.`
                : `At this rate, ${count(data.executions.projected_month_end)} by the end of the month.`
            }),
            h(Meter, { name: 'Cues', share: data.cues, note: `${count(data.cues.active)} active; paused cues count too.` })
          ),
          h(
            Panel,
            { key: 'facts', title: 'This billing period' },
            h(Facts, {
              items: [
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
              ]
            })
          ),
          h(
            Panel,
            { key: 'plan', title: isSold ? 'Change the plan' : 'Plan and limits' },
            h(
              'p',
              {},
              h('a', { href: `${serviceRoot}/plans` }, 'Compare the plans'),
              !isSold
                ? '. The operator of this service sets plans and limits.'
                : mayBuy
                  ? ', then choose one. You pay on Stripe’s pages.'
                  : '. To change it, sign in with a key that has the account scope, or with an email link.'
            ),
            isSold &&
              mayBuy &&
              h(
                'div',
                { class: 'actions left' },
                ['pro', 'scale']
                  .filter(plan => plan !== data.plan)
                  .map(plan =>
                    h(Button, {
                      key: plan,
                      label: `Choose ${plan}`,
                      kind: 'main',
                      onClick: () => void leave('/v1/billing/checkout', { plan, interval: 'monthly' })
                    })
                  ),
                data.plan !== 'free' && h(Button, { label: 'Payment and invoices', onClick: () => void leave('/v1/billing/portal') })
              )
          )
        ]
  )
}
