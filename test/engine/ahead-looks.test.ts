/** Looking ahead while cues are created, moved and fired: no slot is overlooked. */
import fc from 'fast-check'
import t from 'tap'
import type { Functions, LookAheadByScheduleRow } from '../../src/database/functions.ts'
import type { DueCue } from '../../src/firing/due-cue.ts'
import { createAhead } from '../../src/firing/look-ahead.ts'
import { bySchedule } from '../support/by-schedule.ts'
import type { LookAheadRow } from '../support/firing-stage.ts'
import { always } from '../support/seed.ts'

const start = Date.parse('2030-01-15T09:00:00Z')
const stepMs = 10
const onTimeMs = 100

/** What happens at a time: a cue is created, or moved to another instant, by someone who notifies the engine a little later. */
const change = fc.record({
  at: fc.integer({ min: 0, max: 500 }),
  cue: fc.integer({ min: 0, max: 5 }),
  cron: fc.constantFrom('* * * * * *', '*/3 * * * * *', '0 0 * * *'),
  dueInMs: fc.oneof(fc.integer({ min: 20, max: 4000 }), fc.integer({ min: 1000, max: 2000 })),
  notifiedAfter: fc.integer({ min: 0, max: 3 }),
  isSilent: fc.boolean()
})
/** How many steps statements take until they read or write, and then until they answer. */
const delays = fc.record({ reads: fc.integer({ min: 0, max: 3 }), answers: fc.integer({ min: 0, max: 20 }) })

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never
type Delays = typeof delays extends fc.Arbitrary<infer T> ? T : never

const row = (cue: number, cron: string, nextRun: number, version: number) =>
  ({
    cue_id: `cue_${cue}`,
    account_id: 'a',
    version,
    next_run: new Date(nextRun),
    next_slot: null,
    transport: 'webhook',
    schedule_type: 'recurring',
    cron,
    timezone: 'UTC',
    schedule_rules: null,
    runs_left: null,
    catch_up: 'skip_missed',
    outage_until: null,
    over_limit: false,
    window_slots: null,
    tracked: false
  }) as unknown as LookAheadRow

/** Runs an engine over changes. Returns how late each slot was taken, and whether its cue had been changed silently and was not on time since. */
const run = async (changes: Change[], looks: Delays, takes: Delays, atOnce: number, pollIntervalMs = 1000) => {
  let step = 0
  const now = () => start + step * stepMs
  const table = new Map<string, LookAheadRow>()
  const silent = new Set<string>()
  const late: { ms: number; isSilent: boolean }[] = []
  const later: { at: number; act: () => void }[] = []
  const after = (steps: number, act: () => void) => void later.push({ at: step + steps, act })

  const lookAheadBySchedule = ({ until }: Parameters<Functions['lookAheadBySchedule']>[0]) =>
    new Promise<LookAheadByScheduleRow[]>(resolve =>
      after(looks.reads, () => {
        const rows = [...table.values()].sort((a, b) => +a.next_run - +b.next_run)
        const near = rows.filter(({ next_run }) => next_run <= until!)
        const beyond = rows.find(({ next_run }) => next_run > until!)
        after(looks.answers, () => resolve(bySchedule(beyond ? [...near, beyond] : near)))
      })
    )
  const ahead = createAhead({ fn: { lookAheadBySchedule, calendarsByRevision: async () => [] } as never, now, pollIntervalMs })

  const take = (cue: DueCue) =>
    after(takes.reads, () => {
      const current = table.get(cue.cue_id)
      const isTaken = current?.version === cue.version && +current.next_run === +cue.slot.next_run
      if (isTaken) {
        const ms = now() - +cue.slot.next_run
        late.push({ ms, isSilent: silent.has(cue.cue_id) })
        if (ms <= onTimeMs) silent.delete(cue.cue_id)
        table.set(cue.cue_id, { ...current, next_run: cue.slot.next!.due })
      }
      after(takes.answers, () => {
        ahead.doneWith([cue])
        isTaken ? ahead.fired(cue) : ahead.tryAgain(cue)
      })
    })

  for (; step < 1000; step++) {
    for (const { cue, cron, dueInMs, notifiedAfter, isSilent } of changes.filter(({ at }) => at === step)) {
      const former = table.get(`cue_${cue}`)
      const due = now() + dueInMs
      table.set(`cue_${cue}`, row(cue, cron, due, (former?.version ?? 0) + 1))
      if (isSilent) silent.add(`cue_${cue}`)
      else after(notifiedAfter, () => ahead.expect(due))
    }
    for (const one of later.splice(0)) one.at <= step ? one.act() : later.push(one)
    for (let n = 0; n < 6; n++) await Promise.resolve()
    if (ahead.isLookDue()) void ahead.look()
    for (const cue of ahead.takeDue('send', atOnce).cues) take(cue)
  }
  return { late, left: [...table.values()].filter(({ next_run }) => +next_run < now() - 1500 - pollIntervalMs).length }
}

t.test('every slot is taken on time, and those of cues that were changed without a notification at the next look', async t => {
  await always(
    fc.asyncProperty(
      fc.array(change, { maxLength: 12 }),
      delays,
      delays,
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom(1000, 5000),
      async (changes, looks, takes, atOnce, pollIntervalMs) => {
        const { late, left } = await run(changes, looks, takes, atOnce, pollIntervalMs)
        const steps = looks.reads + looks.answers + takes.reads + takes.answers
        for (const { ms, isSilent } of late) {
          const limit = (isSilent ? pollIntervalMs : onTimeMs) + steps * 2 * stepMs
          if (ms > limit) throw new Error(`${ms} ms late${isSilent ? ', changed silently' : ''}`)
        }
        return left === 0
      }
    ),
    100
  )
  t.pass('all of them')
})
