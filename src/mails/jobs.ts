/** The jobs of mails, and what composes them. */
import type { Links } from '../accounts/links.ts'
import type { Functions } from '../database/functions.ts'
import type { Mail } from './layout.ts'

/** The data of jobs, by kind. */
export type Jobs = {
  registered: { account_id: string; key_id: string }
  cue_failed: { account_id: string; execution_id: string }
  cue_paused: { account_id: string; execution_id: string; failures: number }
  limit_reached: { account_id: string }
  magic_link: { link_id: string }
  deletion_requested: { account_id: string; deletion_id: string }
  downgrade: { account_id: string; cue_ids: string[]; same_plan?: true }
  payment_failed: { account_id: string; next_attempt_at: string | null }
  confirm_address: { account_id: string; address_id: string }
  channel_test: { account_id: string; channel_id: string }
  notice: { account_id: string; notice_id: string }
  approval_requested: { account_id: string; execution_id: string }
  endpoint_disabled: { account_id: string; endpoint_id: string }
}
export type MailJob = { [kind in keyof Jobs]: { kind: kind } & Jobs[kind] }[keyof Jobs]

export type Options = {
  fn: Functions
  links: Links
  baseUrl: string
  /** Whether plans can be bought. */
  isSold: boolean
  /** Decrypts with ENCRYPTION_KEYS; undefined if the key is missing. */
  decryptKey: (ciphertext: string, purpose: `device_code ${string}`) => string | undefined
}

export type Kinds = { [kind in keyof Jobs]: (job: Jobs[kind], isFirst: boolean) => Promise<Mail | undefined> }
