/** The account's feed of events: one stream per tab, while the tab is shown. Without it, pages poll. */
import { queryText } from './api.ts'
import { serviceRoot } from './root.ts'

export type FeedEvent = { type: string; cue_id: string | null; execution_id: string | null; data: { id?: string } }

/** After this time without it, pages read what they show, instead of all that happened meanwhile. */
const resumeMs = 300_000
/** A refused stream is opened again after this time. */
const retryMs = 60_000
/** A read may have begun this long before its answer was there. */
const readMs = 3000

let source: EventSource | undefined
let cursor: string | undefined
let seenAt = 0
let isOpen = false
// No event has been missed from then on.
let since = 0

/** Whether events say how what was read at an instant changes. */
export const isLive = (readAt: number): boolean => isOpen && readAt > since + readMs

const close = () => {
  source?.close()
  source = undefined
  isOpen = false
}

type Hear = (event: FeedEvent | undefined) => void

/** Opens the stream if there is none, or instead of one that was refused. */
const open = (hear: Hear, refused?: EventSource) => {
  if (source !== refused || document.hidden) return
  close()
  if (Date.now() - seenAt > resumeMs) cursor = undefined
  const stream = new EventSource(`${serviceRoot}/v1/events${queryText({ after: cursor })}`)
  source = stream
  const on = (name: string, act: (data: string) => void) =>
    stream.addEventListener(name, ({ data, lastEventId }: MessageEvent<string>) => {
      seenAt = Date.now()
      if (cursor === undefined) since = seenAt
      cursor = lastEventId
      isOpen = true
      act(data)
    })
  on('heartbeat', () => {})
  on('truncated', () => hear(undefined))
  on('message', data => hear(JSON.parse(data)))
  stream.onerror = () => {
    isOpen = false
    // Otherwise the browser connects again, from the latest event on.
    if (stream.readyState !== EventSource.CLOSED) return
    cursor = undefined // which may be what was refused
    setTimeout(() => open(hear, stream), retryMs)
  }
}

/** Opens the stream, while the tab is shown; returns a function that ends it. `hear` gets each event, or undefined if some are missing. */
export const openFeed = (hear: Hear): (() => void) => {
  const update = () => (document.hidden ? close() : open(hear))
  document.addEventListener('visibilitychange', update)
  update()
  return () => {
    document.removeEventListener('visibilitychange', update)
    close()
    cursor = undefined
  }
}
