/** The columns of a gate's settings. */
import { amountText } from '../costs/amounts.ts'
import { type Detail, fault, invalid } from '../errors.ts'
import { isLength, lengthOf } from '../schedule/offset.ts'
import { canonicalTimeZone } from '../schedule/zones.ts'
import type { PutGate } from './schemas.ts'

const LONGEST = lengthOf('31d')
const isWithin = (length: string) => isLength(length) && lengthOf(length) >= 1000 && lengthOf(length) <= LONGEST
const lengthRule = 'must be a whole number and a unit, such as 10s, 5m, 2h or 1d, from 1s to 31d'

/**
 * Columns of `cue.gates`, with which `put_gate` replaces a gate.
 * @throws ApiError validation_error, with all members at fault
 */
export const columnsOf = ({ order, breaker, budget, max_wait, on_failure, ...rest }: PutGate): object => {
  const { parallel, rate, per } = rest
  const faults: Detail[] = []
  const refuse = (path: string, rule: string) => faults.push(fault(path.split('.'), rule))
  if (per != null && !isWithin(per)) refuse('per', lengthRule)
  if (max_wait != null && !isWithin(max_wait)) refuse('max_wait', lengthRule)
  if (rate != null && per == null) refuse('per', 'goes with rate: set the interval in which so many attempts may start, such as 10s')
  if (per != null && rate == null) refuse('rate', 'goes with per: set how many attempts may start in that interval')
  if (order && parallel != null && parallel !== 1) refuse('parallel', 'must be 1 with order: leave it out, or leave out order')
  if (on_failure === 'pause' && !order) refuse('on_failure', 'goes with order: true')
  const { failures = 10, open_seconds = 30, max_open_seconds = Math.max(600, open_seconds) } = breaker ?? {}
  if (open_seconds > max_open_seconds) refuse('breaker.open_seconds', 'must not exceed max_open_seconds')
  const timezone = budget && canonicalTimeZone(budget.timezone ?? 'UTC')
  const limit = budget && amountText(budget.limit)
  const reserve = budget?.reserve == null ? null : amountText(budget.reserve)
  if (budget && timezone === undefined) refuse('budget.timezone', 'must be an IANA time zone name such as Europe/London')
  if (budget && limit === undefined) refuse('budget.limit', 'must have at most nine decimal places')
  if (reserve === undefined) refuse('budget.reserve', 'must have at most nine decimal places')
  if (faults.length > 0) throw invalid(faults)
  return {
    ...rest,
    ...(order != null && { ordered: order }),
    ...(on_failure != null && { on_failure }),
    ...(max_wait != null && { max_wait }),
    ...(breaker && { breaker_failures: failures, breaker_open_seconds: open_seconds, breaker_max_open_seconds: max_open_seconds }),
    ...(budget && {
      budget_limit: limit,
      budget_unit: budget.unit,
      budget_period: budget.per,
      budget_timezone: timezone,
      budget_reserve: reserve
    })
  }
}
