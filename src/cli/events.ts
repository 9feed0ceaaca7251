/** `pgcue events` */
import type { Event, EventFeed } from '../client/index.ts'
import { aboutEvent } from '../events/about.ts'
import { command, filtersOf } from './command.ts'
import { poll } from './executions.ts'
import type { Output } from './output.ts'
import { cueOption } from './reference.ts'

export const events = command({
  options: {
    ...filtersOf('listEvents', { cue: cueOption, wait: null }),
    follow: { type: 'boolean', short: 'f', help: 'go on with what happens, until interrupted; from now on, without --after' }
  },
  notes: `Prints the events that are kept, oldest first, and the cursor to continue from. With --follow and --json, each line is an event as JSON.`,
  longRunning: true,
  run: async ({ options, out, io, ready }) => {
    const { client, body } = await ready<EventFeed>()
    if (!options.follow) {
      const page = await client.events({ after: 'start', ...body, wait: 0 })
      if (out.json) return out.jsonLine(page)
      for (const event of page.events) print(out, event)
      out.line(page.has_more ? `More: --after ${page.cursor}` : `To continue: --after ${page.cursor}`)
      return
    }
    let { after } = body
    await poll(
      { out, io, intervalMs: 0 },
      signal => client.events({ ...body, after, wait: 30 }, { signal }),
      page => {
        if (page.truncated) io.stderr.write('pgcue: some events are missing: they were too old, or above the limit of a day\n')
        for (const event of page.events) print(out, event)
        after = page.cursor
        return false
      }
    )
  }
})

const print = (out: Output, event: Event) => {
  if (out.json) return out.jsonLine(event)
  const { at, type, cue_id, cue_key, execution_id } = event
  out.line([`${at.slice(0, 19)}Z`, type, cue_key ?? cue_id, execution_id, aboutEvent(event)].filter(Boolean).join('  '))
}
