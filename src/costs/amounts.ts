/** Amounts as text, which SQL reads as exact numbers. */
import { fault, invalid } from '../errors.ts'
import type { Costs } from './schemas.ts'

/** The text of an amount; undefined if it has more than nine decimal places. */
export const amountText = (amount: string | number): string | undefined => {
  if (typeof amount === 'string') return amount
  const text = amount.toFixed(9)
  return Number(text) === amount ? text.replace(/[.]?0+$/, '') : undefined
}

/**
 * Costs of a report as JSON for SQL.
 * @throws ApiError validation_error
 */
export const costsText = (costs: Costs | null | undefined): string | undefined => {
  if (costs == null) return undefined
  const exact = costs.map(({ amount, unit }, i) => {
    const text = amountText(amount)
    if (text === undefined) throw invalid([fault(['costs', i, 'amount'], 'must have at most nine decimal places')])
    return { amount: text, unit }
  })
  return JSON.stringify(exact)
}
