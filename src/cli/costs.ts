/** `pgcue costs` */
import type { CostsQuery } from '../client/index.ts'
import { command, fromApi } from './command.ts'

export const costs = command({
  options: fromApi('readCosts', { by: 'by', from: 'from', to: 'to' }),
  notes: `Handlers report costs with their outcomes: {"success": true, "costs": [{"amount": "0.12", "unit": "usd"}]}

Example
  pgcue costs --by tag --from 2030-01-01T00:00:00Z`,
  run: async ({ ready }) => {
    const { client, body } = await ready<CostsQuery>()
    return client.costs(body)
  },
  text: ({ costs, has_more }, out) => {
    if (costs.length === 0) return 'No costs.'
    out.table(
      costs.map(({ cue_id, tag, day, ...sum }) => ({ name: cue_id ?? tag ?? day, ...sum })),
      ['name', 'amount', 'unit']
    )
    if (has_more) return 'There are more. Use a shorter period.'
  }
})
