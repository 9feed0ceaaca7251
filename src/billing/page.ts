/** The page that links about plans lead to: what they offer and how to buy one. It shows nothing about an account. */
import type { Limits, Plan } from '../config.ts'
import { html } from '../pages/html.ts'
import type { Page } from '../pages/page.ts'
import { setByOperator } from './upgrade-url.ts'

const amount = (n: number): string => n.toLocaleString('en')
const command = (baseUrl: string, path: string, body?: string) =>
  html`<pre tabindex="0"><code>curl -X POST ${baseUrl}${path} \\
  -H "Authorization: Bearer $KEY"${
    body &&
    html` \\
  -H 'Content-Type: application/json' \\
  -d '${body}'`
  }</code></pre>`

/** @param isSold whether plans can be bought */
export const plansPage = ({ plans, baseUrl, isSold }: { plans: Record<Plan, Limits>; baseUrl: string; isSold: boolean }): Page => ({
  title: 'Plans and billing',
  isText: true,
  body: html`<table id="billing">
<thead><tr><th scope="col">Plan</th><th scope="col">Cues</th><th scope="col">Executions per month</th><th scope="col">Requests per minute</th></tr></thead>
<tbody>
${Object.entries(plans).map(
  ([name, { cues, executions_per_month, requests_per_minute }]) =>
    html`<tr><th scope="row">${name}</th><td>${amount(cues)}</td><td>${amount(executions_per_month)}</td><td>${amount(requests_per_minute)}</td></tr>
`
)}</tbody>
</table>
<p>To see your usage: <code>pgcue usage</code>, or <code>GET /v1/usage</code>.</p>
${
  isSold
    ? html`<h2>Get a plan</h2>
<p>This call returns the URL of a checkout page; <code>interval</code> may also be <code>annual</code>. The key needs the scope <code>account</code>.</p>
${command(baseUrl, '/v1/billing/checkout', '{"plan": "pro", "interval": "monthly"}')}
<p class="soft">A new plan is active within moments, as soon as the payment is confirmed.</p>
<h2>Cards, invoices, cancellation</h2>
<p>This call returns the URL of a page to manage them:</p>
${command(baseUrl, '/v1/billing/portal')}`
    : html`<p>${setByOperator} As the operator, use the page <a href="${baseUrl}/dashboard/operator">Operator</a>, or:</p>
<pre tabindex="0"><code>curl -X PATCH ${baseUrl}/v1/operator/accounts/$ACCOUNT_ID \\
  -H "Authorization: Bearer $OPERATOR_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"limits": {"executions_per_month": 10000}}'</code></pre>`
}`
})
