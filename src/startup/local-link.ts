/**
 * The account of an embedded database, made for its data directory. Its key and the address are kept in a file there, for the command line. The
 * link that the service prints opens the dashboard signed in, once, on this machine.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { createKey, hashKey, isKey, storedKey } from '../accounts/keys.ts'
import { type LocalAccount, localFile, readLocalAccount } from '../accounts/local-file.ts'
import { createLocalToken, signInLink } from '../accounts/local-token.ts'
import { localEmail } from '../accounts/operator.ts'
import type { Config } from '../config.ts'
import { createFunctions } from '../database/functions.ts'
import { createPool } from '../database/pool.ts'
import { draftIn } from '../directories.ts'

/** Returns the link, valid for 15 minutes. */
export const openLocalAccount = async (config: Config): Promise<string> => {
  const file = localFile(config.dataDir)
  const token = createLocalToken()
  const pool = createPool(config, { max: 1 })
  try {
    const fn = createFunctions(pool)
    const open = async (api_key: string) => {
      const account_id = await fn.newAccountId({})
      const key = storedKey(config.encryptionKeys, api_key, account_id)
      if (!(await fn.openLocalAccount({ account_id, email: localEmail, ...key, token_hash: hashKey(token) }))) return false
      write(config.dataDir, file, { base_url: config.baseUrl, api_key, email: localEmail })
      return true
    }
    const kept = readLocalAccount(file)?.api_key ?? ''
    if (!(isKey(kept) && (await open(kept)))) await open(createKey(config.cell))
  } finally {
    await pool.end()
  }
  return signInLink(config, token)
}

const write = (dataDir: string, file: string, content: LocalAccount): void => {
  const draft = draftIn(dataDir)
  writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, file)
}
