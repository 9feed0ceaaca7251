/** Every mail there is. A job names a kind and ids; what the mail tells is looked up when it is sent, by the SQL function mail_<kind>. */
import type { Links } from '../accounts/links.ts'
import { upgradeUrl } from '../billing/upgrade-url.ts'
import type { Functions } from '../database/functions.ts'
import { counted, spoken } from '../pages/page.ts'
import { type Mail, quote } from './layout.ts'

/** What a job of each kind carries. */
type Jobs = {
  registered: { account_id: string; key_id: string }
  cue_failed: { account_id: string; execution_id: string }
  limit_reached: { account_id: string }
  magic_link: { link_id: string }
  deletion_requested: { account_id: string; deletion_id: string }
  downgrade: { account_id: string; cue_ids: string[] }
  payment_failed: { account_id: string; next_attempt_at: string | null }
}
export type MailJob = { [kind in keyof Jobs]: { kind: kind } & Jobs[kind] }[keyof Jobs]

type Options = {
  fn: Functions
  links: Links
  baseUrl: string
  /** Opens what was encrypted with one of ENCRYPTION_KEYS. */
  decryptKey: (ciphertext: string) => string | undefined
}

/**
 * Writes mails. Nothing comes of a job when there is nobody left to tell, or nothing left to say.
 * `isFirst` says that the job is tried for the first time.
 */
export const createComposer = ({ fn, links, baseUrl, decryptKey }: Options) => {
  const kinds: { [kind in keyof Jobs]: (job: Jobs[kind], isFirst: boolean) => Promise<Mail | undefined> } = {
    registered: async ({ account_id, key_id }) => {
      const told = await fn.mailRegistered({ account_id, key_id })
      return (
        told && {
          to: told.email,
          subject: 'An account was made with your address',
          blocks: [
            `With this e-mail address an account was made at ${baseUrl}, and an API key for it.`,
            {
              facts: [
                ['When', spoken(told.created_at)],
                ['From', told.ip],
                ['Key', `${told.key_prefix}…`]
              ]
            },
            'If that was not you, this page has a button that revokes all keys and deletes the account:',
            { link: links.url('not-me', account_id), label: 'It was not me' },
            'Opening the page changes nothing yet. The link is good for 30 days.',
            'If it was you, confirm the address. Until then at most three mails a day tell of failures:',
            { link: links.url('confirm-email', account_id), label: 'Confirm this address' }
          ],
          why: 'This mail is sent once, to every address that an account is made with.'
        }
      )
    },

    cue_failed: async ({ account_id, execution_id }, isFirst) => {
      const told = await fn.mailCueFailed({ account_id, execution_id, counted: isFirst })
      const isConfirmed = await fn.isEmailConfirmed({ account_id })
      return (
        told && {
          to: told.email,
          subject: told.status === 'missed' ? 'An execution was missed' : 'An execution failed',
          blocks: [
            told.status === 'missed'
              ? 'An execution of this cue was missed.'
              : `An execution of this cue failed, after ${counted(told.attempts, 'attempt')}.`,
            {
              facts: [
                ['Cue', quote(told.cue_name)],
                ['Cue id', told.cue_id],
                ['Scheduled for', spoken(told.scheduled_for)],
                ['Ended', spoken(told.ended_at)],
                ['Last HTTP status', told.http_status],
                ['Error', told.error_message === null ? null : quote(told.error_message)],
                ['Execution id', told.execution_id]
              ]
            },
            ...(after[told.cue_status] ?? []),
            `To see all of it, or to run it again: GET ${baseUrl}/v1/executions/${execution_id}, POST ${baseUrl}/v1/executions/${execution_id}/replay.`,
            ...(told.quiet ? [isConfirmed ? lastOfHour : lastOfDay] : []),
            ...(isConfirmed ? [] : [unconfirmed, { link: links.url('confirm-email', account_id), label: 'Confirm this address' }])
          ],
          why: `You get this because on_failure.email is on for this cue. PATCH /v1/cues/${told.cue_id} with {"on_failure": {"email": false}} turns it off.`
        }
      )
    },

    limit_reached: async ({ account_id }) => {
      const told = await fn.mailLimitReached({ account_id })
      return (
        told && {
          to: told.email,
          subject: 'You have used your executions for this month',
          blocks: [
            `The plan ${told.plan} has ${told.executions_per_month} executions a month, and all of them are used.`,
            `Everything goes on running until ${spoken(told.grace_ends_at)}, or until you have used twice as many, whichever comes first. From then on, and until the month ends, nothing runs unless you choose a larger plan.`,
            `What you have used: GET ${baseUrl}/v1/usage. A larger plan: POST ${baseUrl}/v1/billing/checkout.`
          ],
          why: 'This mail is sent once in a month in which the limit of the plan is reached.'
        }
      )
    },

    magic_link: async ({ link_id }) => {
      const told = await fn.mailMagicLink({ link_id })
      const device_code = told && decryptKey(told.code_ciphertext)
      if (!told || !device_code) return undefined
      return {
        to: told.email,
        subject: 'Your link to sign in',
        blocks: [
          'A program asks to sign in with this e-mail address. Go on only if you began that yourself and it shows this code:',
          { code: device_code },
          { link: links.url('verify', link_id, { device_code }), label: 'Sign in' },
          `The link is good once, until ${spoken(told.expires_at)}.`,
          `It was asked for${told.ip ? ` from ${told.ip}` : ''}. If it was not you, leave the link alone: without it nobody gets in.`
        ],
        why: 'This mail is sent when somebody names this address in order to sign in, three times an hour at most.'
      }
    },

    deletion_requested: async ({ deletion_id }) => {
      const told = await fn.mailDeletionRequested({ deletion_id })
      return (
        told && {
          to: told.email,
          subject: 'Your account is about to be deleted',
          blocks: [
            `On ${spoken(told.due_at)} your account at ${baseUrl} is deleted, with all its cues, their history and its API keys. Nothing of it can be brought back.`,
            'If you want to keep it, cancel this before then:',
            { link: links.url('cancel-deletion', deletion_id), label: 'Keep my account' },
            'If you did not ask for it yourself, somebody else has your API key or reads your mail: cancel, sign in, and revoke the keys that you do not know.'
          ],
          why: 'This mail is sent when the deletion of an account is asked for.'
        }
      )
    },

    downgrade: async ({ account_id, cue_ids }) => {
      const told = await fn.mailDowngrade({ account_id, cue_ids })
      return (
        told && {
          to: told.email,
          subject: `Your plan is ${told.plan} now`,
          blocks: [
            told.paused.length
              ? `It has room for ${told.cues} cues. The newest ones beyond that are paused; nothing was deleted:`
              : `It has room for ${told.cues} cues. All of yours go on.`,
            ...(told.paused.length ? [{ quotes: told.paused }, 'To have one of them run again, pause or delete another first.'] : [])
          ],
          why: 'This mail is sent when the plan of an account becomes a smaller one.'
        }
      )
    },

    payment_failed: async ({ account_id, next_attempt_at }) => {
      const told = await fn.mailPaymentFailed({ account_id })
      return (
        told && {
          to: told.email,
          subject: `The payment for your plan ${told.plan} failed`,
          blocks: [
            next_attempt_at
              ? `It is tried again on ${spoken(new Date(next_attempt_at))}. Until the last try has failed the plan stays.`
              : 'It is not tried again by itself.',
            'To pay in another way, or to change the plan:',
            { link: upgradeUrl(baseUrl), label: 'Manage billing' },
            `The same by program: POST ${baseUrl}/v1/billing/portal.`
          ],
          why: 'This mail is sent when a payment for the plan of an account fails.'
        }
      )
    }
  }

  return async (job: MailJob, isFirst: boolean): Promise<Mail | undefined> => {
    const compose = kinds[job.kind] as ((job: object, isFirst: boolean) => Promise<Mail | undefined>) | undefined
    if (!compose) throw new Error(`there is no mail of the kind ${job.kind}`)
    return compose(job, isFirst)
  }
}

const lastOfHour = 'This was the tenth such mail within an hour. Until that has passed there are no more.'
const lastOfDay = 'This was the third such mail within 24 hours. Until those have passed there are no more.'
const unconfirmed = 'Nobody has confirmed this address yet, so it gets three such mails in 24 hours at most. To get more:'

const after: Record<string, string[]> = {
  paused: ['The cue is paused. PATCH its status to active to have it go on.'],
  failed: ['It was to run once, and does not run again.']
}
