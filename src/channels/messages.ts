/** What each type of channel is sent: one POST of a fixed form. Text from users is escaped for its medium, and shortened to its limits. */
import type { Links } from '../accounts/links.ts'
import type { AlertSeverity, ChannelType, NoticeKind } from '../db.types.ts'
import { userAgent } from '../deliveries/request.ts'
import { signHeaders } from '../deliveries/signature.ts'
import { aboutEvent } from '../events/about.ts'
import { counted, spoken } from '../pages/page.ts'

/** What a message says, whatever the channel. */
export type Message = {
  /** Groups messages about one thing; the id of an alert or event. */
  id: string
  state: 'raised' | 'resolved' | 'news'
  severity: AlertSeverity
  title: string
  /** Further lines; may be empty. */
  text: string
  /** The page about it in the dashboard, unless `label` says otherwise. */
  link: string
  label?: string
  at: Date
}

/** `body` is JSON, unless it is a text. */
type Post = { url: string; headers?: Record<string, string>; body: object | string }

const inDashboard = 'Open in the dashboard'
const pagerDutyUrl = 'https://events.pagerduty.com/v2/enqueue'
const colors = { info: 0x3b82f6, warning: 0xd97706, high: 0xdc2626, critical: 0x991b1b, resolved: 0x16a34a }
/** ntfy's priorities, of which 3 is usual. */
const priorities = { info: 2, warning: 3, high: 4, critical: 5 }
const urgencies = { info: 'info', warning: 'warning', high: 'error', critical: 'critical' }

const slack = (url: string, message: Message): Post => {
  const { title, text, link, label = inDashboard } = message
  // Only the fallback and the link are markup; the link is ours.
  const blocks = [
    { type: 'header', text: plain(fit(title, 150)) },
    ...(text ? [{ type: 'section', text: plain(fit(text, 3000)) }] : []),
    { type: 'context', elements: [{ type: 'mrkdwn', text: `<${slackText(link)}|${label}>` }] }
  ]
  return { url, body: { text: slackText(fit(title, 150)), mrkdwn: false, blocks, unfurl_links: false, unfurl_media: false } }
}
const plain = (text: string) => ({ type: 'plain_text', text, emoji: false })
const slackText = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const discord = (url: string, message: Message): Post => ({
  url,
  body: {
    embeds: [
      {
        title: discordText(message.title, 256),
        ...(message.text && { description: discordText(message.text, 2000) }),
        url: message.link,
        color: colorOf(message),
        timestamp: message.at.toISOString()
      }
    ],
    allowed_mentions: { parse: [] }
  }
})
/** Every punctuation mark may be escaped; a zero-width space keeps clients from showing a mention. */
const discordText = (text: string, length: number) =>
  fit(
    fit(text, length / 2)
      .replace(/[\\*_~`|>#[\]()<:-]/g, '\\$&')
      .replaceAll('@', '@\u200B'),
    length
  )
const colorOf = ({ state, severity }: Message) => (state === 'resolved' ? colors.resolved : colors[severity])

/** A card for a workflow's webhook. Markdown works in TextBlock, not in the runs of RichTextBlock. */
const teams = (url: string, { state, severity, title, text, link, label = inDashboard }: Message): Post => {
  const color = state === 'resolved' ? 'Good' : severity === 'info' ? 'Default' : severity === 'warning' ? 'Warning' : 'Attention'
  const line = (text: string, style: object = {}) => ({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text, ...style }] })
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [line(fit(title, 300), { weight: 'Bolder', size: 'Medium', color }), ...(text ? [line(fit(text, 2000))] : [])],
    actions: [{ type: 'Action.OpenUrl', title: label, url: link }]
  }
  return {
    url,
    body: { type: 'message', attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }] }
  }
}

/** ntfy stores at most 4,096 bytes of text, and decodes headers of RFC 2047. */
const ntfy = (url: string, { state, severity, title, text, link }: Message): Post => ({
  url,
  headers: {
    'Content-Type': 'text/plain; charset=utf-8',
    Title: headerText(fit(title, 200)),
    Priority: String(state === 'resolved' ? priorities.info : priorities[severity]),
    Tags: state === 'resolved' ? 'white_check_mark' : severity === 'info' ? 'information_source' : 'warning',
    Click: link
  },
  body: fit(text || title, 1000)
})
const headerText = (title: string) => {
  const text = title.replaceAll('\n', ' ')
  return /^[\x20-\x7e]*$/.test(text) && !text.startsWith('=?') ? text : `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`
}

/** `target` is a routing key, or the full URL of another address with `?routing_key=`. */
const pagerduty = (target: string, { id, state, severity, title, text, link, label = inDashboard, at }: Message): Post => {
  const url = new URL(target.includes('://') ? target : pagerDutyUrl)
  const routing_key = url.searchParams.get('routing_key') ?? target
  url.searchParams.delete('routing_key')
  const payload = {
    summary: fit(title, 1024),
    source: new URL(link).host,
    severity: urgencies[severity],
    timestamp: at.toISOString(),
    ...(text && { custom_details: { text: fit(text, 2000) } })
  }
  const links = [{ href: link, text: label }]
  const body = {
    routing_key,
    dedup_key: id,
    ...(state === 'resolved' ? { event_action: 'resolve' } : { event_action: 'trigger', payload, links })
  }
  return { url: url.href, body }
}

/** Types whose message is a form of a service; mails are made where they are sent. */
const forms = { slack, discord, teams, ntfy, pagerduty }

/** An event as webhooks get it. */
export type Sent = {
  id: string
  type: string
  at: string
  cue_id: string | null
  cue_key: string | null
  execution_id: string | null
  data: unknown
  /** The link that decides about an execution. */
  link?: string
}

type Channel = { type: ChannelType; target: string; secrets: string[] | null }
type Request = { url: string; method: 'POST'; headers: Record<string, string>; body: string }

/** The request that brings an event to a webhook or an endpoint. `body` is its JSON. */
export const signedRequest = (url: string, secrets: readonly string[], id: string, body: string, now: number): Request => ({
  url,
  method: 'POST',
  headers: signHeaders({ secrets, executionId: id, timestamp: Math.floor(now / 1000), body }),
  body
})

/** The request of a message to a channel, unless it is a mail; `sent` is the same for webhooks. `now` is in epoch milliseconds. */
export const requestTo = ({ type, target, secrets }: Channel, message: Message, sent: Sent, now: number): Request => {
  if (type === 'email') throw new Error('a mail is not a request')
  const {
    url,
    headers = {},
    body
  } = type === 'webhook' ? signedRequest(target, secrets ?? [], sent.id, JSON.stringify(sent), now) : forms[type](target, message)
  return {
    url,
    method: 'POST',
    headers: { 'User-Agent': userAgent, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body)
  }
}

/** A notice as SQL returns it. */
export type Notice = {
  kind: NoticeKind
  alert_id: string | null
  severity: AlertSeverity | null
  alert: unknown
  content: unknown
  created_at: Date
  is_decider: boolean
}
type Alert = {
  message: string
  cue_id: string
  execution_id: string | null
  resolution: { after_seconds: number; failed: number; missed: number } | null
}
type Asked = { cue_name: string; approval: { message: string | null; expires_at: string | null }; reminder: number }
type Happened = { failures: number; resolved: boolean; acknowledged: boolean }

/** Returns a notice's message, and the event that webhooks get instead. `id` is that of the notice. */
export const messageOf = (
  id: string,
  { kind, alert_id, severity, alert, content, created_at: at, is_decider }: Notice,
  { baseUrl, links }: { baseUrl: string; links: Pick<Links, 'url'> }
): { message: Message; sent: Sent } => {
  const link = ({ execution_id, cue_id }: Pick<Sent, 'execution_id' | 'cue_id'>) =>
    `${baseUrl}/dashboard${execution_id ? `/executions/${execution_id}` : cue_id ? `/cues/${cue_id}` : ''}`
  if (kind === 'event') {
    const sent = content as Sent
    const message: Message = {
      id: sent.id,
      state: 'news',
      severity: 'info',
      title: sent.type,
      text: aboutEvent(sent) ?? '',
      link: link(sent),
      at: new Date(sent.at)
    }
    return { message, sent }
  }
  if (kind === 'approval') {
    const event = content as Sent
    const { cue_name, approval, reminder } = event.data as Asked
    const decides = is_decider ? links.url('approval', event.execution_id!) : undefined
    const message: Message = {
      id: event.id,
      state: 'news',
      severity: 'high',
      title: `${reminder > 0 ? 'Still waits for approval' : 'Waits for approval'}: ${cue_name}`,
      text: [approval.message, approval.expires_at && `Decide before ${spoken(new Date(approval.expires_at))}.`].filter(Boolean).join('\n'),
      link: decides ?? link(event),
      ...(decides && { label: 'Approve or reject' }),
      at: new Date(event.at)
    }
    return { message, sent: { ...event, ...(decides && { link: decides }) } }
  }
  const data = alert as Alert
  const { message: title, resolution, cue_id, execution_id } = data
  const happened = kind === 'summary' ? (content as Happened) : undefined
  const isResolved = resolution !== null && (kind === 'resolved' || happened?.resolved === true)
  const end = isResolved ? ended(resolution) : ''
  const parts = happened
    ? [
        happened.failures > 0 && `It failed ${counted(happened.failures, 'more time')}.`,
        end,
        happened.acknowledged && 'It was acknowledged.'
      ]
    : [end]
  const message: Message = {
    id: alert_id!,
    state: isResolved ? 'resolved' : 'raised',
    severity: severity!,
    title: kind === 'raised' ? title : `${kind === 'resolved' ? 'Resolved' : 'While snoozed'}: ${title}`,
    text: parts.filter(Boolean).join(' ') || `Severity: ${severity}`,
    link: link(data),
    at
  }
  return {
    message,
    sent: {
      id,
      type: `alert.${kind}`,
      at: at.toISOString(),
      cue_id,
      cue_key: null,
      execution_id,
      data: happened ? { ...data, happened } : data
    }
  }
}

const ended = ({ after_seconds, failed, missed }: NonNullable<Alert['resolution']>) =>
  `It succeeded again after ${spokenDuration(after_seconds)}, with ${failed} failed and ${missed} missed.`

const spokenDuration = (seconds: number) =>
  seconds < 120
    ? counted(seconds, 'second')
    : seconds < 7200
      ? counted(Math.round(seconds / 60), 'minute')
      : counted(Math.round(seconds / 3600), 'hour')

/** What a test of a channel says. */
export const testMessage = (name: string, id: string, baseUrl: string, at: Date): { message: Message; sent: Sent } => {
  const title = `Test of the channel ${name}`
  const text = 'Alerts and events that you route to it will arrive here.'
  return {
    message: { id, state: 'news', severity: 'info', title, text, link: `${baseUrl}/dashboard/channels`, at },
    sent: { id, type: 'channel.test', at: at.toISOString(), cue_id: null, cue_key: null, execution_id: null, data: { channel: name } }
  }
}

/** Shortens a text, without a half of a surrogate pair at its end, and without control characters but line breaks. */
const fit = (text: string, length: number): string => {
  const clean = text.replace(/[^\P{Cc}\n]/gu, ' ').replace(/[\u202A-\u202E\u2066-\u2069]/g, '')
  return clean.length <= length ? clean : `${clean.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
