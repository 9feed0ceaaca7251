/** Channels on the wire. */
import { type Static, Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Listed, Nullable, notDots, orElse, Page, Strict, Tag, Timestamp } from '../schemas.ts'

const name = { pattern: `^${notDots}[A-Za-z0-9._:/-]{1,64}$` }

export const ChannelName = Type.String({ ...name, description: 'The name of a channel: 1 to 64 characters of `A-Za-z0-9._:/-`.' })

/** A malformed name gets the same error as an unknown one, unless the route creates the channel. */
export const ChannelParams = Type.Object({
  channel_name: orElse('channel_not_found', 'Channel not found in this account.', Type.String(name))
})
export const NewChannelParams = Type.Object({ channel_name: Type.String({ ...name, description: 'Percent-encoded.' }) })

const channel = {
  type: Type.Enum([...enums.channelType]),
  severity: Type.Enum([...enums.alertSeverity], { description: 'The least severity of its alerts. Default: `high`.' }),
  tags: Type.Array(Tag, { maxItems: 10, uniqueItems: true, description: 'Only what concerns a cue that has all of these tags.' }),
  default: Type.Boolean({ description: 'Whether it gets the alerts of cues that name no channels. Default: false.' }),
  enabled: Type.Boolean({ description: 'Default: true.' })
}

export const PutChannel = Strict({
  type: channel.type,
  target: Type.String({
    minLength: 1,
    maxLength: 2048,
    description:
      'Where to send: an email address, or a URL: the incoming webhook of Slack, Discord or Teams, the topic of ntfy, any address for `webhook`. For ' +
      '`pagerduty` the routing key, or a URL with `?routing_key=`. Sending a mask back keeps the stored value.'
  }),
  types: Type.Optional(
    Nullable(
      Type.Array(Type.String({ maxLength: 100 }), {
        minItems: 1,
        maxItems: 50,
        description:
          'Types of events that it gets; `execution.*` means all that begin so. With `alert.raised`, alerts and their resolution, of all cues that name no ' +
          'channels. Without types: alerts and their resolution.'
      })
    )
  ),
  severity: Type.Optional(channel.severity),
  tags: Type.Optional(channel.tags),
  default: Type.Optional(channel.default),
  enabled: Type.Optional(channel.enabled)
})
export type PutChannel = Static<typeof PutChannel>

export const Channel = Type.Object({
  name: Type.String(),
  ...channel,
  target: Type.String({ description: 'Masked: the host of a URL, the domain of an address.' }),
  types: Nullable(Type.Array(Type.String())),
  created_at: Timestamp,
  updated_at: Timestamp
})

export const ListChannels = Type.Object(Page())
export const Channels = Type.Object({
  channels: Type.Array(Channel),
  ...Listed
})

export const ChannelTest = Type.Object({
  http_status: Type.Optional(Type.Integer({ description: 'Of the response; 202 for a mail, which is queued.' })),
  error: Type.Optional(Type.String({ description: 'Why an alert would not arrive.' }))
})
