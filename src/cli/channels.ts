/** `pgcue channels …` */
import type { Channel, ChannelTest, Client, PutChannel } from '../client/index.ts'
import { acting, data, filtersOf, fromApi, listing } from './command.ts'
import { CliError } from './exit-codes.ts'
import type { Output } from './output.ts'

const show = ({ created_at: created, updated_at: updated, ...channel }: Channel, out: Output) =>
  out.fields({ ...channel, created, updated })

export const list = listing(
  ({ channels }, query) => channels.list(query),
  answer => answer.channels,
  ['name', 'type', 'target', 'default', 'enabled', ['types', ({ types }) => types?.join(' ')]],
  { empty: 'No channels.', options: filtersOf('listChannels') }
)

export const get = acting(({ channels }, name) => channels.get(name), show)

export const set = acting(({ channels }, name, body: PutChannel) => channels.put(name, body), show, {
  options: {
    ...data,
    ...fromApi('putChannel', {
      type: 'type',
      target: { member: 'target', value: 'URL', help: 'where to send: an email address, a URL, or a PagerDuty routing key' },
      event: {
        member: 'types',
        value: 'TYPE',
        help: 'type of event that it gets, such as execution.failed or cue.* (default: alerts only)'
      },
      severity: 'severity',
      tag: { member: 'tags', value: 'TAG' },
      default: { member: 'default', help: 'gets the alerts of cues that name no channels' },
      enabled: { member: 'enabled', negatable: true, help: 'send to it (default: true)' }
    })
  },
  names: { channel_name: 'NAME' },
  notes: `What is not given gets its default. An email address that is not confirmed yet gets a link first.

Example
  pgcue channels set ops --type slack --target https://hooks.slack.com/services/T0/B0/XXXX --default`
})

/** A test of a channel or an endpoint; it fails if nothing arrives. */
export const testing = (send: (client: Client, id: string) => Promise<ChannelTest>) =>
  acting(
    async (client, id) => {
      const { http_status, error } = await send(client, id)
      if (error !== undefined) throw new CliError(error)
      return { http_status }
    },
    ({ http_status }) => `Sent: HTTP ${http_status}`
  )

export const test = testing(({ channels }, name) => channels.test(name))

export const remove = acting(
  ({ channels }, name) => channels.delete(name).then(() => ({ name, deleted: true })),
  ({ name }) => `Channel ${name} deleted`
)
