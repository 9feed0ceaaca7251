/** Mails of channels and event endpoints, and the one that confirms an address. */
import { messageOf } from '../channels/messages.ts'
import { spoken } from '../pages/page.ts'
import type { Kinds, Options } from './jobs.ts'
import { mailOf, quote } from './layout.ts'

export const toChannels = ({
  fn,
  links,
  baseUrl
}: Options): Pick<Kinds, 'confirm_address' | 'channel_test' | 'notice' | 'endpoint_disabled' | 'approval_requested'> => ({
  confirm_address: async ({ address_id }) =>
    mailOf(await fn.mailConfirmAddress({ address_id }), row => ({
      subject: 'Confirm this address for alerts',
      blocks: [
        `An account at ${baseUrl} wants to send its alerts to this address:`,
        { facts: [['Account', quote(row.account_email)]] },
        'If you expect them, confirm the address. Otherwise ignore this mail.',
        { link: links.url('confirm-address', address_id), label: 'Confirm this address' }
      ],
      why: 'This mail is sent when an account enters an address for a channel, at most three times an hour.'
    })),

  channel_test: async ({ channel_id }) =>
    mailOf(await fn.mailChannelTest({ channel_id }), row => ({
      subject: 'Test of a channel',
      blocks: [{ facts: [['Channel', quote(row.name)]] }, 'Alerts and events that you route to it will arrive here.'],
      why: 'This mail is sent when somebody tests a channel.'
    })),

  endpoint_disabled: async ({ endpoint_id }) =>
    mailOf(await fn.mailEndpointDisabled({ endpoint_id }), row => ({
      subject: 'An event endpoint was disabled',
      blocks: [
        `Nothing more is sent to an event endpoint, because all ${row.tries} tries since ${spoken(row.failing_since)} have failed.`,
        {
          facts: [
            ['URL', quote(row.url)],
            ['Last HTTP status', row.http_status],
            ['Error', row.error === null ? null : quote(row.error)],
            ['Endpoint ID', endpoint_id]
          ]
        },
        `Once it works again: POST ${baseUrl}/v1/event-endpoints/${endpoint_id}/enable with {"from": "failure"} sends what it has missed, with {"from": "now"} only what follows.`
      ],
      why: 'This mail is sent when an event endpoint has failed for 3 days.'
    })),

  approval_requested: async ({ account_id, execution_id }, isFirst) =>
    mailOf(await fn.mailApprovalRequested({ account_id, execution_id, counted: isFirst }), row => ({
      subject: row.reminders > 0 ? 'A run still waits for your approval' : subjects.approval,
      blocks: [
        {
          facts: [
            ['Message', row.message === null ? null : quote(row.message)],
            ['Cue', quote(row.cue_name)],
            ['Cue ID', row.cue_id],
            ['Scheduled for', spoken(row.scheduled_for)],
            ['Execution ID', execution_id],
            ['Decide before', row.expires_at && spoken(row.expires_at)],
            ['Otherwise', row.expires_at && (row.on_expiry === 'run' ? 'it runs' : 'it is missed')]
          ]
        },
        row.by_link
          ? { link: links.url('approval', execution_id), label: 'Approve or reject' }
          : { link: `${baseUrl}/dashboard/executions/${execution_id}`, label: 'Open in the dashboard' }
      ],
      why: 'This mail is sent when a run of a cue with an approval waits, and no channel gets the request.'
    })),

  notice: async ({ notice_id }) => {
    const row = await fn.readNotice({ notice_id })
    if (!row) return undefined
    const { message, sent } = messageOf(notice_id, row, { baseUrl, links })
    const { title, text, state, at, link, label = 'Open in the dashboard' } = message
    return {
      to: row.target,
      subject: row.kind === 'event' ? sent.type : subjects[row.kind],
      blocks: [
        {
          facts: [
            ['What', quote(title)],
            ['Details', text === '' ? null : quote(text)],
            ['Cue', row.cue_name === null ? null : quote(row.cue_name)],
            ['Cue ID', sent.cue_id],
            ['Execution ID', sent.execution_id],
            ['Severity', state === 'raised' ? message.severity : null],
            ['When', spoken(at)]
          ]
        },
        { link, label }
      ],
      why: 'You get this mail because a channel of your account has this address. To turn it off, delete the channel on the page Channels.'
    }
  }
})
const subjects = {
  approval: 'A run waits for your approval',
  raised: 'An alert was raised',
  resolved: 'An alert was resolved',
  summary: 'What happened while an alert was snoozed'
}
