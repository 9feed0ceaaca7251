/** The file in DATA_DIR with the key of the local account, and the address of the service, for programs of the same user. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type LocalAccount = { base_url: string; api_key: string; email: string }

export const localFile = (dataDir: string): string => join(dataDir, 'local.json')

/** Returns the file's content; undefined if it is missing or not as written here. Whose file it is, the caller checks. */
export const readLocalAccount = (file: string): LocalAccount | undefined => {
  try {
    const { base_url, api_key, email } = JSON.parse(readFileSync(file, 'utf8'))
    return [base_url, api_key, email].every(value => typeof value === 'string') ? { base_url, api_key, email } : undefined
  } catch {
    return undefined
  }
}
