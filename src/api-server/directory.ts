/** The cells of email addresses, which the home cell's directory decides, and of sign-ins, which continue in the cell of their address. */
import { hashKey } from '../accounts/keys.ts'
import type { App } from '../app.ts'
import { cellOfValue } from '../cells/ids.ts'
import { ApiError, isUnavailable, unavailable, inTime as within } from '../errors.ts'

const countedForMs = 1000
/** Maximum wait for another cell's answer: one that hangs must not hold up requests that concern the others. */
const answerMs = 2000

export type Directory = ReturnType<typeof createDirectory>

export const createDirectory = (apps: readonly App[]) => {
  const [home, ...rest] = apps as [App, ...App[]]
  const appOf = (cell: number) => apps[cell - 1]!

  /** Returns the cell of an address that has an account or was claimed; while the home cell is unavailable, of one that has an account. */
  const findAddress = async (email: string): Promise<number | null> => {
    try {
      return await inTime(home.fn.findAddress({ email }))
    } catch (error) {
      if (!isUnavailable(error)) throw error
      const answers = rest.map(async app => (await inTime(app.fn.findAddress({ email }))) ?? Promise.reject())
      return Promise.any(answers).catch(() => null)
    }
  }

  let chosen: Promise<number>
  let chosenAt = Number.NEGATIVE_INFINITY
  /** Returns the cell with the fewest accounts among those that respond. */
  const chooseCell = async (): Promise<number> => {
    const cells = home.config.registerCells
    const counts = await Promise.all(cells.map(cell => inTime(appOf(cell).fn.countAccounts({})).catch(() => Number.POSITIVE_INFINITY)))
    return cells[counts.indexOf(Math.min(...counts))]!
  }
  const cellForNew = (): Promise<number> => {
    if (performance.now() - chosenAt >= countedForMs) {
      chosenAt = performance.now()
      chosen = chooseCell()
    }
    return chosen
  }

  const cellOfEmail = async (email: string): Promise<number> => (await findAddress(email)) ?? cellForNew()

  return {
    cellOfEmail,
    /** Returns the cell in which a sign-in continues. */
    cellOfCode: async (code: string): Promise<number> => {
      const cell = cellOfValue(code, apps.length)
      return (await appOf(cell).fn.findDeviceCode({ code_hash: hashKey(code) }))[0]?.cell ?? cell
    },
    /** Returns the cell in which a sign-in continues with an address: that of the address, unless it already continues elsewhere. */
    cellOfSignIn: async (code: string, email: string): Promise<number> => {
      const code_hash = hashKey(code)
      const first = cellOfValue(code, apps.length)
      const { fn } = appOf(first)
      const [started] = await fn.findDeviceCode({ code_hash })
      if (started?.cell !== first) return started?.cell ?? first
      const cell = await cellOfEmail(email)
      if (cell === first) return cell
      const { ip, created_at, expires_at } = started
      await appOf(cell).fn.putDeviceCode({ code_hash, ip, created_at, expires_at })
      return (await fn.handOverDeviceCode({ code_hash, cell })) ?? first
    }
  }
}

/** Makes both functions that create accounts claim the address first, in the home cell. */
export const claimAddresses = (apps: readonly App[]): void => {
  const [home] = apps as [App]
  for (const { fn, config } of apps) {
    const { register, approveDevice } = fn
    const claim = async (email: string, address: string | null = null): Promise<boolean> => {
      // An account that exists here needs neither a claim nor the home cell.
      if ((await fn.findAddress({ email })) === config.cell) return true
      return (await inTime(home.fn.claimAddress({ email, cell: config.cell, address }))) === config.cell
    }
    fn.register = async args => {
      // A simultaneous request was faster; the next one goes to its cell.
      if (!(await claim(args.email, args.address))) throw unavailable()
      return register(args)
    }
    fn.approveDevice = async args => {
      const link = await fn.deviceLink(args)
      if (link?.email && !(await claim(link.email)))
        throw new ApiError('device_code_expired', 'This address now has an account in another cell. Start again on the device.')
      return approveDevice(args)
    }
  }
}

const inTime = <T>(answer: Promise<T>): Promise<T> => within(answer, answerMs)
