/** Lists: a promise of the first page, and an iteration over all. */
import type { Query } from './transport.ts'

/** Resolves to the first page. `for await` continues to the last one; `limit` is the size of a page. */
export type List<P, I> = Promise<P> & AsyncIterable<I>

export type ItemOf<Items> = Items extends readonly (infer Item)[] ? Item : never

type Page = { next_cursor?: string | null; offset?: number; total?: number }

export const iterable = <P, I>(first: Promise<P>, itemsOf: (first: P) => Iterable<I> | AsyncIterable<I>): List<P, I> =>
  Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      yield* itemsOf(await first)
    }
  })

export const listOf = <P extends object, N extends keyof P & string>(
  read: (further: Query) => Promise<P>,
  name: N,
  { offset = 0 }: Query
): List<P, ItemOf<P[N]>> => {
  const pages = async function* (first: P) {
    let place = Number(offset)
    for (let page = first; ; ) {
      const items = page[name] as ItemOf<P[N]>[]
      yield* items
      const { next_cursor, total = 0 } = page as Page
      place += items.length
      // A search may find nothing on a page, and go on.
      if (next_cursor) page = await read({ cursor: next_cursor, offset: undefined })
      else if (next_cursor === undefined && items.length > 0 && place < total) page = await read({ offset: place })
      else return
    }
  }
  return iterable(read({}), pages)
}
