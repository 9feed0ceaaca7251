/** Options of lists: which part of a list to show. */
import { type Context, integer } from './command.ts'

export const page = {
  limit: { type: 'string', value: 'N', help: 'maximum number of results, 1 to 100' },
  offset: { type: 'string', value: 'N', help: 'number of results to skip' }
} as const

/** The same for long lists, whose pages by cursor are equally fast. */
export const longPage = {
  ...page,
  cursor: { type: 'string', value: 'CURSOR', help: 'continue after the page that showed this cursor, instead of --offset' },
  'count-to': { type: 'string', value: 'N', help: 'count the total only up to this number, 0 to 10000, which is faster' }
} as const

export const longPageNames = { cursor: '--cursor', count_to: '--count-to' } as const

export const pageOf = (options: Context<typeof page>['options']) => ({
  limit: integer(options.limit, 'limit', 1, 100),
  offset: integer(options.offset, 'offset', 0, 2 ** 31 - 1)
})

export const longPageOf = (options: Context<typeof longPage>['options']) => ({
  ...pageOf(options),
  cursor: options.cursor,
  count_to: integer(options['count-to'], 'count-to', 0, 2 ** 31 - 1)
})
