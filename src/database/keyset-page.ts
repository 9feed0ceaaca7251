/** What lists say about a page that begins at a cursor, and may end where a search stopped. */

export type Asked = { limit: number; offset: number; cursor?: string; count_to?: number; search_to?: number }

type Found = {
  /** Counted up to one more than `count_to`. */
  total: number
  /** The cursor of the last item, if there are more. */
  next: string | null
  /** The cursor at which the search stopped; null if it went through all. */
  end: string | null
}

export const pageInfo = ({ limit, offset, cursor, count_to = Number.POSITIVE_INFINITY }: Asked, isSearch: boolean, result: Found) => {
  const { total, next, end } = result
  return {
    total: Math.min(total, count_to),
    total_exact: total <= count_to && end === null && !(isSearch && cursor !== undefined),
    next_cursor: next ?? end,
    limit,
    offset,
    has_more: next !== null || end !== null
  }
}
