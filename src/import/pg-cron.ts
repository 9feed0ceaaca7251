/** Rows of pg_cron's cron.job, as JSON or CSV, become worker cues. */
import { cronSchedule, type Fields, type Importer, judged, type Options, optionalText, refuse, textOf, translate } from './entries.ts'
import { FormatError, type Part, readParts } from './parts.ts'

export const pgCron: Importer = (text, options) =>
  translate(/^\ufeff?\s*[[{]/.test(text) ? readParts(text) : rowsOf(text), row => {
    const command = textOf(row, 'command')
    const database = optionalText(row, 'database')
    const on = [database && `database ${database}`, optionalText(row, 'username') && `as ${row.username}`].filter(Boolean).join(' ')
    return {
      name: optionalText(row, 'jobname') || `job-${row.jobid ?? refuse('jobname and jobid are missing')}`,
      comment: on ? `SQL, in ${on}:\n${command}` : `SQL:\n${command}`,
      cue: {
        schedule: scheduleOf(textOf(row, 'schedule').trim(), options),
        worker: true,
        overlap: 'queue_one', // as there
        ...(isFalse(row.active) && { paused: true })
      }
    }
  })

const isFalse = (active: unknown) => active === false || /^f(alse)?$/i.test(String(active))

const scheduleOf = (text: string, options: Options) => {
  const [, seconds] = /^(\d+) +seconds?$/i.exec(text) ?? []
  if (seconds !== undefined) {
    const step = Number(seconds)
    // Shorter than the shortest interval, which a cron expression may be.
    if (step > 0 && step < 10 && 60 % step === 0) return judged({ cron: `*/${step} * * * * *`, timezone: options.timezone }, options.now)
    return judged({ every: `${step}s`, timezone: options.timezone }, options.now)
  }
  if (text.split(/\s+/)[2]?.includes('$')) refuse('$ (the last day of the month) is not supported')
  return cronSchedule(text, options.timezone, options)
}

/** The rows of CSV with a header. Quoted fields may have line breaks. */
const rowsOf = (text: string): Part[] => {
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|$)/y
  const records: { fields: string[]; line: number }[] = []
  let record = { fields: [] as string[], line: 1 }
  let line = 1
  const source = text.replace(/^\ufeff/, '')
  for (let isLast = false; !isLast; ) {
    const [whole, value, end] = field.exec(source) ?? []
    if (whole === undefined) throw new FormatError(line, 'is not valid CSV: a quote is not closed, or not doubled')
    record.fields.push(value!.startsWith('"') ? value!.slice(1, -1).replaceAll('""', '"') : value!)
    line += whole.split('\n').length - 1
    if (end === ',') continue
    isLast = field.lastIndex === source.length
    if (record.fields.length > 1 || record.fields[0] !== '') records.push(record)
    record = { fields: [], line }
  }
  const [header, ...rows] = records
  if (!header?.fields.includes('schedule') || !header.fields.includes('command'))
    throw new FormatError(1, 'is neither JSON nor CSV with a header that has schedule and command')
  return rows.map(({ fields, line }) => {
    if (fields.length !== header.fields.length)
      throw new FormatError(line, `has ${fields.length} fields where the header has ${header.fields.length}`)
    return { line, value: Object.fromEntries(header.fields.map((name, i) => [name, fields[i]])) as Fields }
  })
}
