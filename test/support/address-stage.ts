/** What the tests of addresses share. */
import { type AddressOptions, type AddressRules, createAddressRules } from '../../src/deliveries/address.ts'
import type { Resolve } from '../../src/deliveries/resolve.ts'

/** A resolver that fails with a code. */
export const failing =
  (code: string): Resolve =>
  async () => {
    throw Object.assign(new Error(code), { code })
  }

/** Rules as in production, with a resolver that returns one public address. */
export const rules = (options: Partial<AddressOptions> = {}): AddressRules =>
  createAddressRules({ allowCidrs: [], allowHttp: false, resolve: async () => ['93.184.215.14'], ...options })

/** Allows callbacks to this machine. */
export const loopback = { allowCidrs: ['127.0.0.0/8', '::1/128'], allowHttp: true }
