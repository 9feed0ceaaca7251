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

/** Seconds that a request waits for an event. */
const longWait = 30

type Feed<P, I> = List<P, I> & {
  /** From where to continue: all events before it have been read. Undefined before the first page. */
  readonly cursor: string | undefined
  /** Whether events were missing: too old, or above the limit of a day. */
  readonly truncated: boolean
}
type FeedPage<I> = { events: I[]; cursor: string; has_more: boolean; truncated: boolean }

/** A feed, which goes on with what happens later until the signal is aborted; with `wait` 0, to the latest event. */
export const feedOf = <P extends FeedPage<I>, I>(read: (further: Query) => Promise<P>, wait?: number, signal?: AbortSignal): Feed<P, I> => {
  const first = read({ wait: wait ?? 0 })
  const state = { cursor: undefined as string | undefined, truncated: false }
  const iterate = async function* (): AsyncGenerator<I> {
    try {
      for (let page = await first; ; page = await read({ after: state.cursor, wait: wait ?? longWait })) {
        state.truncated ||= page.truncated
        yield* page.events
        state.cursor = page.cursor
        if (wait === 0 && !page.has_more) return
      }
    } catch (error) {
      if (!signal?.aborted) throw error
    }
  }
  const members = { cursor: { get: () => state.cursor }, truncated: { get: () => state.truncated } }
  return Object.defineProperties(Object.assign(first, { [Symbol.asyncIterator]: iterate }), members) as unknown as Feed<P, I>
}
