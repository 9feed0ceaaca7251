/** Channels: where alerts and events are sent. */
import { useState } from 'preact/hooks'
import type { Channels as Answer, Channel, ChannelTest, PutChannel } from '../../../client/types.ts'
import { call, post } from '../api.ts'
import { optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Button, Empty } from '../ui/basics.tsx'
import { act, askToRemove, Confirm, show } from '../ui/dialog.tsx'
import { CheckField, SelectField, TextField, useText } from '../ui/form.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'

const pathOf = (name: string) => `/v1/channels/${encodeURIComponent(name)}`

const contentOf = ({ enabled, types, default: isDefault }: Channel) =>
  enabled
    ? (types?.join(', ') ?? (isDefault ? 'alerts of all cues that name no channel' : 'alerts of cues that name it'))
    : 'nothing: it is off'

const test = (name: string) =>
  act(async () => {
    const { error } = await post<ChannelTest>(`${pathOf(name)}/test`)
    if (error !== undefined) throw new Error(error)
  }, 'The test message was sent')

const columnsFor = (remove: (name: string) => void): Column<Channel>[] => [
  ['Channel', ({ name }) => <span class="name">{name}</span>, 'cell-main'],
  ['Sends to', ({ type, target }) => `${type}, ${target}`],
  ['Gets', contentOf],
  [
    '',
    ({ name }) => (
      <>
        <Button label="Send a test" icon="webhook" kind="quiet" onClick={() => void test(name)} />
        <Button label="Delete" icon="trash" kind="quiet" iconOnly onClick={() => remove(name)} />
      </>
    ),
    'cell-actions'
  ]
]

export const ChannelsPage = () => {
  const read = useRead<Answer>('/v1/channels', { limit: 50, offset: useOffset() })
  const mayChange = useMay('account')
  const remove = (name: string) =>
    askToRemove({
      title: `Delete ${name}`,
      text: 'Nothing more is sent to it.',
      done: 'The channel is deleted',
      action: () => call('DELETE', pathOf(name)).then(read.reload)
    })
  const columns = columnsFor(remove).slice(0, mayChange ? undefined : -1)
  const actions = mayChange && (
    <Button label="Add a channel" icon="plus" kind="main" onClick={() => show(<Adding onDone={read.reload} />)} />
  )
  const text = 'A channel sends alerts to people: by mail, or to Slack, Discord, Teams, ntfy, PagerDuty, or any URL.'
  return (
    <Page title="Channels" read={read} actions={actions}>
      {data => (
        <Paged
          page={data}
          rows={data.channels}
          {...{ columns }}
          caption="Channels"
          noun="channel"
          empty={<Empty title="No channels" text={text} />}
        />
      )}
    </Page>
  )
}

const Adding = (dialog: { onDone: () => void }) => {
  const [name, type, target, types] = [useText(), useText('email'), useText(), useText()]
  const [isDefault, setDefault] = useState(true)
  const body = {
    type: type.value as PutChannel['type'],
    target: target.value.trim(),
    types: types.value.match(/[^\s,]+/g),
    default: isDefault
  }
  return (
    <Confirm title="Add a channel" label="Add" done="Added" action={() => call('PUT', pathOf(name.value.trim()), { body })} {...dialog}>
      <TextField label="Name" placeholder="ops" required maxLength={64} {...name} hint="Letters, digits and . _ : / -" />
      <SelectField label="Service" options={optionsOf('channelType')} {...type} />
      <TextField label="Target" required mono hint="An email address, a URL, or PagerDuty's routing key." {...target} />
      <CheckField label="Gets the alerts of cues that name no channel" checked={isDefault} onInput={setDefault} />
      <TextField label="Events" placeholder="execution.failed, cue.*" hint="Leave it empty for alerts only." {...types} />
    </Confirm>
  )
}
