/** What lists say about a page that begins at a cursor, and may end where a search stopped. */
import { invalid } from '../errors.ts'

export type Asked = { limit: number; offset: number; cursor?: string; count_to?: number; search_to?: number; sort?: string }

type Found = {
  /** Counted up to one more than `count_to`. */
  total: number
  /** The cursor of the last item, if there are more. */
  next: string | null
  /** The cursor at which the search stopped; null if it went through all. */
  end: string | null
}

export const pageInfo = (
  { limit, offset, cursor, count_to = Number.POSITIVE_INFINITY, sort }: Asked,
  isSearch: boolean,
  { total, next, end }: Found
) => {
  // A search goes on from where it stopped, which a list in another order does not.
  const further = next ?? (sort === undefined ? end : null)
  return {
    total: Math.min(total, count_to),
    total_exact: total <= count_to && end === null && !(isSearch && cursor !== undefined),
    next_cursor: further,
    limit,
    offset,
    has_more: further !== null
  }
}

/**
 * The number of items before a page of a list in another order than by age: that is what its cursors say. Undefined for the usual order.
 * @throws ApiError for a cursor of a list in another order
 */
export const placeOf = ({ sort, cursor, offset }: Omit<Asked, 'limit'>): number | undefined => {
  if (cursor !== undefined && /^\d+$/.test(cursor) !== (sort !== undefined)) {
    const msg = 'Value error, comes from a list in another order'
    throw invalid([{ type: 'value_error', loc: ['query', 'cursor'], msg, input: cursor }])
  }
  return sort === undefined ? undefined : Number(cursor ?? offset)
}
