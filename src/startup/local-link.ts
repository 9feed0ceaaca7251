/** The link that an embedded start prints: opens the dashboard signed in, once, on this machine, to an account made for its data directory. */
import { createKey, hashKey, storedKey } from '../accounts/keys.ts'
import { createLocalToken } from '../accounts/local-token.ts'
import { localEmail } from '../accounts/operator.ts'
import type { Config } from '../config.ts'
import { createFunctions } from '../database/functions.ts'
import { createPool } from '../database/pool.ts'

/** Returns the link, valid for 15 minutes. The token is in the fragment, which browsers send to no server. */
export const createLocalLink = async (config: Config): Promise<string> => {
  const token = createLocalToken()
  const api_key = createKey(config.cell)
  const pool = createPool(config, { max: 1 })
  try {
    const fn = createFunctions(pool)
    const account_id = await fn.newAccountId({})
    await fn.openLocalAccount({
      account_id,
      email: localEmail,
      ...storedKey(config.encryptionKeys, api_key, account_id),
      token_hash: hashKey(token)
    })
  } finally {
    await pool.end()
  }
  return `${config.baseUrl}/dashboard#token=${token}`
}
