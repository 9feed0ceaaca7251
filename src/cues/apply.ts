/** Declared cues: makes the cues of a set as a list says, all or none, and reports all errors of the list at once. */
import type { FastifyInstance } from 'fastify'
import type { Functions } from '../database/functions.ts'
import { createYield } from '../database/yield.ts'
import type { AddressRules, CheckedUrl } from '../deliveries/address.ts'
import { fault, invalid } from '../errors.ts'
import type { DeclaredGate } from '../gates/schemas.ts'
import { columnsOf } from '../gates/settings.ts'
import { uniteSmall } from '../http/body.ts'
import { validatorCompiler } from '../http/validation.ts'
import type { Json } from '../json/canonical-json.ts'
import { createAllowance, namesOf } from '../schedule/parse-schedule.ts'
import { readCalendars } from '../schedule/stored-calendars.ts'
import { changesBetween, type Definition } from './applied.ts'
import { newCue, replacementOf } from './changes.ts'
import { type Applied, type Apply, DeclaredCue, MAX_DECLARED } from './declared-schemas.ts'
import { type Faults, faultsOf, together } from './faults.ts'
import type { Columns } from './next-runs.ts'
import { type Asking, changeInTurn, changesText, checkAddresses, checkTimeout } from './write.ts'

/** Callback hosts looked up at the same time. */
const LOOKUPS = 100
/** A refusal of one cue of the list, named by its key, or by its place if it has none. */
type Fault = Faults & { name: string | number }
type Stored = Awaited<ReturnType<Functions['readDeclaredCues']>>[number]
type Wanted = { cue: DeclaredCue; stored: Stored | undefined; columns: Columns; next_run: Date | null; next_slot: Date | null }
type Names = (string | number)[]

/** @throws ApiError with all faults; the code they share, otherwise validation_error */
export const applyCues = async (
  app: FastifyInstance,
  asking: Asking,
  request: Apply,
  fn: Pick<Functions, 'applyCues'> = app.fn
): Promise<Applied> => {
  const { caller } = asking
  const { set } = request
  const [dry_run, prune, take_over] = [request.dry_run ?? false, request.prune ?? false, request.take_over ?? false]
  const list = await readCues(app, request.cues)
  const gates = readGates(request.gates ?? [])
  return changeInTurn(`${caller.account_id} apply`, async () => {
    const faults = [...gates.faults, ...list.faults]
    const accepted = await definitions(app, asking, list.cues, faults)
    const cues = await textOf(app, asking, accepted)
    const keys = list.names.filter(name => typeof name === 'string')
    // The list is refused anyway: only the other refusals are wanted.
    const isRefused = faults.length > 0
    const rows = await fn.applyCues({ set, cues, keys, prune, take_over, dry_run: dry_run || isRefused, gates: gates.columns, ...caller })
    for (const { key, action, error: code, message } of rows) {
      if (code !== null) faults.push((action === 'gate refused' ? faultsOfGate : faultsOfCue)(key, { code, message }))
    }
    if (faults.length > 0) throw together(inOrder(faults, list.names))
    const keysOf = (action: string) => rows.flatMap(row => (row.action === action ? [row.key] : []))
    const updated = rows.filter(({ action }) => action === 'updated')
    return {
      set,
      dry_run,
      created: keysOf('created'),
      updated: updated.map(({ key, before, after }) => ({ key, changes: changesBetween(before as Definition, after as Definition) })),
      unchanged: keysOf('unchanged'),
      pruned: keysOf('pruned'),
      ...(request.gates && {
        gates: { created: keysOf('gate created'), updated: keysOf('gate changed'), unchanged: keysOf('gate same') }
      })
    }
  })
}

const free = { names: ['payload'] }
const validate = validatorCompiler({ schema: DeclaredCue, method: 'POST', url: '', httpPart: 'body' })

/** The valid cues of a list, and the names of all. */
const readCues = async (app: FastifyInstance, list: Json): Promise<{ cues: DeclaredCue[]; names: Names; faults: Fault[] }> => {
  const parts = await app.largeJson.splitList(list.text, MAX_DECLARED + 1, free)
  if (parts.length > MAX_DECLARED)
    throw invalid([{ type: 'too_long', loc: ['body', 'cues'], msg: `List should have at most ${MAX_DECLARED} items`, input: null }])
  const cues: DeclaredCue[] = []
  const names: Names = []
  const faults: Fault[] = []
  const seen = new Set<string | number>()
  const yieldToRequests = createYield()
  for (const [place, part] of parts.entries()) {
    await yieldToRequests()
    const parsed = uniteSmall(part, free) ?? 'null'
    const key = (parsed as { key?: unknown }).key
    const name = typeof key === 'string' && key !== '' ? key.slice(0, 255) : place
    names.push(name)
    if (seen.has(name)) faults.push(faultsOfCue(name, invalid([fault(['key'], 'occurs more than once in the list')])))
    else {
      const checked = validate(parsed) as { value?: DeclaredCue; error?: Error }
      if (checked.error) faults.push(faultsOfCue(name, checked.error))
      else cues.push(checked.value!)
    }
    seen.add(name)
  }
  return { cues, names, faults }
}

/** The columns of cues, and their next runs; those at fault are left out. */
const definitions = async (app: FastifyInstance, asking: Asking, cues: DeclaredCue[], faults: Fault[]): Promise<Wanted[]> => {
  const rows = await app.fn.readDeclaredCues({ keys: cues.map(({ key }) => key), ...asking.caller })
  const byKey = new Map(rows.map(row => [row.key, row]))
  const minInterval = asking.limits.min_interval_seconds
  const calendars = await readCalendars(app.fn, asking.caller.account_id, [
    ...new Set(cues.flatMap(({ schedule }) => namesOf(schedule ?? {})))
  ])
  const yieldToRequests = createYield()
  const allow = createAllowance(cues.length)
  const accepted: Wanted[] = []
  for (const cue of cues) {
    await yieldToRequests()
    const stored = byKey.get(cue.key)
    try {
      const { columns, ...next } = allow(() =>
        stored ? replacementOf(cue, stored as never, app.now(), minInterval, calendars) : newCue(cue, app.now(), minInterval, calendars)
      )
      const timeout = (stored?.delivery as DeclaredCue['delivery'])?.timeout_seconds
      if (cue.delivery?.timeout_seconds !== timeout) checkTimeout(asking, cue)
      accepted.push({ cue, stored, columns, ...next })
    } catch (error) {
      faults.push(faultsOfCue(cue.key, error))
    }
  }
  return withoutBlocked(app.rules, accepted, faults)
}

/** Leaves out cues that set a callback which is not allowed. */
const withoutBlocked = async (rules: AddressRules, accepted: Wanted[], faults: Fault[]): Promise<Wanted[]> => {
  const blocked = new Set<Wanted>()
  const each = onceByHost(rules)
  const check = async (target: Wanted) => {
    const { columns, stored, cue } = target
    const isSame = (url: unknown, former: unknown) => url == null || url === former
    const { url } = (stored?.callback ?? {}) as { url?: string }
    const { webhook } = (stored?.on_failure ?? {}) as { webhook?: string }
    if (isSame(columns.callback_url, url) && isSame(columns.on_failure_webhook, webhook)) return
    await checkAddresses({ rules: each }, cue, cue.callback_url).catch(error => {
      blocked.add(target)
      faults.push(faultsOfCue(cue.key, error))
    })
  }
  for (let i = 0; i < accepted.length; i += LOOKUPS) await Promise.all(accepted.slice(i, i + LOOKUPS).map(check))
  return accepted.filter(target => !blocked.has(target))
}

/** Looks up each host only once. */
const onceByHost = (rules: AddressRules): Pick<AddressRules, 'checkUrl'> => {
  const hosts = new Map<string, Promise<CheckedUrl>>()
  return {
    checkUrl: async url => {
      let host: string
      try {
        host = rules.parseUrl(url).host
      } catch {
        return rules.checkUrl(url) // says why, without a lookup
      }
      const checked = hosts.get(host) ?? rules.checkUrl(url)
      hosts.set(host, checked)
      return checked
    }
  }
}

/** The cues as JSON for `apply_cues`. */
const textOf = async (app: FastifyInstance, asking: Asking, accepted: Wanted[]): Promise<string> => {
  const yieldToRequests = createYield()
  const texts: string[] = []
  for (const { cue, stored, columns, next_run, next_slot } of accepted) {
    await yieldToRequests()
    const { key, paused } = cue
    const about = JSON.stringify({ key, cue_id: stored?.id ?? null, version: stored?.version ?? null, next_run, next_slot, paused })
    texts.push(`${about.slice(0, -1)},"changes":${await changesText(app, asking, columns)}}`)
  }
  return `[${texts}]`
}

/** Columns of gates as JSON for `apply_cues`. */
const readGates = (gates: DeclaredGate[]): { columns: string; faults: Fault[] } => {
  const faults: Fault[] = []
  const columns = gates.map(({ key, ...gate }, place) => {
    try {
      if (gates.findIndex(other => other.key === key) < place) throw invalid([fault(['key'], 'occurs more than once in the list')])
      return { key, columns: columnsOf(gate) }
    } catch (error) {
      faults.push(faultsOfGate(key, error))
      // The list is refused anyway, but cues that name the gate are not at fault.
      return { key, columns: {} }
    }
  })
  return { columns: JSON.stringify(columns), faults }
}

const faultsOfGate = (name: string, error: unknown): Fault => ({ name, ...faultsOf(error, ['body', 'gates', name]) })

/** @throws the error unless it is a refusal */
const faultsOfCue = (name: string | number, error: unknown): Fault => ({ name, ...faultsOf(error, ['body', 'cues', name]) })

const inOrder = (faults: Fault[], names: Names) => faults.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name))
