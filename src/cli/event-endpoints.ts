/** `pgcue event-endpoints …` */
import type { EnableEventEndpoint, EventEndpoint, NewEventEndpoint } from '../client/index.ts'
import { testing } from './channels.ts'
import { acting, data, filtersOf, fromApi, listing } from './command.ts'
import type { Output } from './output.ts'

const show = ({ created_at: created, ...endpoint }: EventEndpoint, out: Output) => out.fields({ ...endpoint, created })

export const list = listing(
  ({ eventEndpoints }, query) => eventEndpoints.list(query),
  answer => answer.event_endpoints,
  ['id', 'url', 'status', ['types', ({ types }) => types.join(' ')], 'error'],
  { empty: 'No event endpoints.', options: filtersOf('listEventEndpoints') }
)

export const get = acting(({ eventEndpoints }, id) => eventEndpoints.get(id), show)

export const create = acting(({ eventEndpoints }, url, body: NewEventEndpoint) => eventEndpoints.create({ ...body, url }), show, {
  options: {
    ...data,
    ...fromApi('createEventEndpoint', {
      event: { member: 'types', value: 'TYPE', help: 'type of event that it gets, such as execution.failed or cue.*' },
      tag: 'tag',
      cue: { member: 'cue_ids', value: 'ID', help: 'only events of this cue' },
      description: 'description'
    })
  },
  names: { url: 'URL' },
  notes: `Example
  pgcue event-endpoints create https://example.com/events --event 'execution.*' --event alert.raised`
})

export const enable = acting(
  ({ eventEndpoints }, id, { from = 'failure' }: Partial<EnableEventEndpoint>) => eventEndpoints.enable(id, from),
  show,
  {
    options: fromApi('enableEventEndpoint', {
      from: { member: 'from', help: 'failure: the first event that it has not got; now: without those until now (default: failure)' }
    })
  }
)

export const test = testing(({ eventEndpoints }, id) => eventEndpoints.test(id))

export const remove = acting(
  ({ eventEndpoints }, id) => eventEndpoints.delete(id).then(() => ({ id, deleted: true })),
  ({ id }) => `Event endpoint ${id} deleted`
)
