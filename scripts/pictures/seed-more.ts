/** The rest of a realistic account: a calendar, slots that did not run, and tickets. */
import type pg from 'pg'

const day = 86_400_000
type More = {
  pool: pg.Pool
  call: (method: string, path: string, body?: object) => Promise<unknown>
  account_id: string
  cue: (name: string) => string
  now: Date
}

/** The date of the weekday that is so many days ahead, or of the Monday after it. */
const weekday = (now: Date, ahead: number): string => {
  const date = new Date(now.getTime() + ahead * day)
  while ([0, 6].includes(date.getUTCDay())) date.setTime(date.getTime() + day)
  return date.toISOString().slice(0, 10)
}

export const seedMore = async ({ pool, call, account_id, cue, now }: More): Promise<void> => {
  await call('PUT', '/v1/calendars/holidays%2Fde', {
    description: 'Public holidays in Germany, and our own days off',
    dates: ['01-01', '05-01', '10-03', '12-25', '12-26', weekday(now, 3), '2027-03-26', '2027-03-29', '2027-05-06', '2027-05-17'],
    ranges: [{ from: '2026-12-24T12:00', to: '2026-12-25T00:00' }]
  })
  await call('PUT', '/v1/calendars/releases', { description: 'No batch work while a release is rolled out', dates: [weekday(now, 9)] })
  for (const name of ['Daily sales report', 'Invoice reminders'])
    await call('PATCH', `/v1/cues/${cue(name)}`, { schedule: { exclude_calendars: ['holidays/de'] } })

  /** The slots between two days ago did not run. */
  const gap = (name: string, from: number, until: number, reason: string) =>
    pool.query(
      `with gone as (delete from cue.executions where cue_id = $1 and scheduled_for between $3 and $4 returning scheduled_for)
       insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason, recorded_at)
       select $1, $2, min(scheduled_for), max(scheduled_for), count(*), 'skip_missed', $5, max(scheduled_for) from gone having count(*) > 0`,
      [cue(name), account_id, ...[from, until].map(ago => new Date(now.getTime() - ago * day)), reason]
    )
  await gap('Daily sales report', 54, 51, 'excluded')
  await gap('Daily sales report', 28, 24, 'service_away')
  await gap('Nightly database backup', 28, 24, 'service_away')

  await call('POST', '/v1/support', {
    subject: 'Two deliveries arrived out of order',
    message: 'On Friday, the 09:05 run of “Sync CRM contacts” arrived before the one of 09:00. Is that expected with retries?',
    severity: 'medium'
  })
  await call('POST', '/v1/support', {
    subject: 'Export the calendar of a cue',
    message: 'We would like to subscribe to the next runs of a cue in our own calendar, for example as an iCalendar feed.',
    severity: 'low',
    type: 'feature-request'
  })
  await pool.query(
    "update cue.tickets set status = 'resolved', created_at = now() - interval '9 days', updated_at = now() - interval '8 days' where subject like 'Two%'"
  )
}
