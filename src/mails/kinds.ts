/** All mails. A job has a kind and ids; the SQL function mail_<kind> looks up the content when the mail is sent. */
import { setByOperator, upgradeUrl } from '../billing/upgrade-url.ts'
import type { MailCueFailedRow } from '../database/functions.ts'
import { counted, spoken } from '../pages/page.ts'
import { toChannels } from './channel-kinds.ts'
import type { Jobs, Kinds, MailJob, Options } from './jobs.ts'
import { type Mail, mailOf, quote } from './layout.ts'

/**
 * Returns a function that composes the mail of a job, or undefined if the mail is no longer needed or its recipient is gone. `isFirst`:
 * this is the job's first try.
 */
export const createComposer = (options: Options) => {
  const kinds: Kinds = { ...aboutCues(options), ...aboutAccounts(options), ...toChannels(options) }
  return async (job: MailJob, isFirst: boolean): Promise<Mail | undefined> => {
    const compose = kinds[job.kind] as ((job: object, isFirst: boolean) => Promise<Mail | undefined>) | undefined
    if (!compose) throw new Error(`unknown mail kind ${job.kind}`)
    return compose(job, isFirst)
  }
}

/** Mails that a cue's failures cause. */
const aboutCues = ({ fn, links, baseUrl }: Options): Pick<Kinds, 'cue_failed' | 'cue_paused'> => {
  /** A mail about a failed execution. */
  const aboutFailure = async (
    { account_id, execution_id }: Jobs['cue_failed'],
    isFirst: boolean,
    textsOf: (row: MailCueFailedRow) => { subject: string; first: string; why: string }
  ): Promise<Mail | undefined> => {
    const row = await fn.mailCueFailed({ account_id, execution_id, counted: isFirst })
    const isConfirmed = await fn.isEmailConfirmed({ account_id })
    if (!row) return undefined
    const { subject, first, why } = textsOf(row)
    return {
      to: row.email,
      subject,
      blocks: [
        first,
        {
          facts: [
            ['Cue', quote(row.cue_name)],
            ['Cue ID', row.cue_id],
            ['Scheduled for', spoken(row.scheduled_for)],
            ['Ended', spoken(row.ended_at)],
            ['Last HTTP status', row.http_status],
            ['Error', row.error_message === null ? null : quote(row.error_message)],
            ['Execution ID', row.execution_id]
          ]
        },
        ...(after[row.cue_status] ?? []),
        `Details: GET ${baseUrl}/v1/executions/${execution_id}. Run it again: POST ${baseUrl}/v1/executions/${execution_id}/replay.`,
        ...(row.quiet ? [isConfirmed ? lastOfHour : lastOfDay] : []),
        ...(isConfirmed ? [] : [unconfirmed, { link: links.url('confirm-email', account_id), label: 'Confirm this address' }])
      ],
      why
    }
  }

  return {
    cue_failed: async (job, isFirst) =>
      aboutFailure(job, isFirst, ({ status, cue_id, attempts }) => {
        const isMissed = status === 'missed'
        return {
          subject: isMissed ? 'An execution was missed' : 'An execution failed',
          first: isMissed
            ? 'An execution of this cue was missed.'
            : `An execution of this cue failed, after ${counted(attempts, 'attempt')}.`,
          why: `You get this mail because on_failure.email is on for this cue. To turn it off: PATCH /v1/cues/${cue_id} with {"on_failure": {"email": false}}.`
        }
      }),

    cue_paused: async (job, isFirst) =>
      aboutFailure(job, isFirst, ({ cue_id }) => ({
        subject: 'A cue was paused',
        first: `This cue was paused, because it failed ${job.failures === 1 ? 'once' : `${job.failures} times in a row`}. This is its last failure:`,
        why: `You get this mail because on_failure.pause_after is set for this cue. To turn it off: PATCH /v1/cues/${cue_id} with {"on_failure": {"pause_after": null}}.`
      }))
  }
}

/** All other mails: about sign-in, limits, plans and the account itself. */
const aboutAccounts = ({
  fn,
  links,
  baseUrl,
  isSold,
  decryptKey
}: Options): Omit<
  Kinds,
  'cue_failed' | 'cue_paused' | 'confirm_address' | 'channel_test' | 'notice' | 'endpoint_disabled' | 'approval_requested'
> => ({
  registered: async ({ account_id, key_id }) =>
    mailOf(await fn.mailRegistered({ account_id, key_id }), row => ({
      subject: 'An account was created with your address',
      blocks: [
        `An account and an API key were created at ${baseUrl} with this email address.`,
        {
          facts: [
            ['When', spoken(row.created_at)],
            ['From', row.ip],
            ['Key', `${row.key_prefix}…`]
          ]
        },
        'If that was not you, revoke its keys and delete the account on this page:',
        { link: links.url('not-me', account_id), label: 'This was not me' },
        'Opening the page changes nothing by itself. The link is valid for 30 days.',
        'If it was you, please confirm the address. Until then you get at most three mails a day about failures:',
        { link: links.url('confirm-email', account_id), label: 'Confirm this address' }
      ],
      why: 'This mail is sent once to the address of every new account.'
    })),

  limit_reached: async ({ account_id }) =>
    mailOf(await fn.mailLimitReached({ account_id }), row => ({
      subject: 'You have used your executions for this month',
      blocks: [
        `Your account may run ${row.executions_per_month} executions per month. All of them are used.`,
        `Cues keep running until ${spoken(row.grace_ends_at)}, or until you have used twice as many, whichever comes first. After that, nothing runs until the end of the month unless the limit is raised.`,
        `See your usage: GET ${baseUrl}/v1/usage. ${isSold ? `Upgrade: POST ${baseUrl}/v1/billing/checkout.` : setByOperator}`
      ],
      why: 'This mail is sent at most once a month, when the limit is reached.'
    })),

  magic_link: async ({ link_id }) => {
    const row = await fn.mailMagicLink({ link_id })
    const device_code = row && decryptKey(row.code_ciphertext, `device_code ${row.code_hash.toString('hex')}`)
    if (!row || !device_code) return undefined
    return {
      to: row.email,
      subject: 'Your sign-in link',
      blocks: [
        'A program wants to sign in with this email address. Continue only if you started this yourself and it shows this code:',
        { code: device_code },
        { link: links.url('verify', link_id, { device_code }), label: 'Sign in' },
        `The link works once, until ${spoken(row.expires_at)}.`,
        `It was requested${row.ip ? ` from ${row.ip}` : ''}. If it was not you, do not open the link: nobody can sign in without it.`
      ],
      why: 'This mail is sent when someone enters this address to sign in, at most three times an hour.'
    }
  },

  deletion_requested: async ({ deletion_id }) =>
    mailOf(await fn.mailDeletionRequested({ deletion_id }), row => ({
      subject: 'Your account will be deleted',
      blocks: [
        `On ${spoken(row.due_at)} your account at ${baseUrl} will be deleted, with all its cues, their history and its API keys. This cannot be undone.`,
        'To keep it, cancel the deletion before then:',
        { link: links.url('cancel-deletion', deletion_id), label: 'Keep my account' },
        'If you did not request this, someone else has your API key or reads your mail. Cancel, sign in, and revoke any keys you do not recognise.'
      ],
      why: 'This mail is sent when the deletion of an account is requested.'
    })),

  downgrade: async ({ account_id, cue_ids, same_plan }) =>
    mailOf(await fn.mailDowngrade({ account_id, cue_ids }), row => ({
      subject: same_plan ? 'Your cue limit is lower now' : `Your plan is now ${row.plan}`,
      blocks: [
        row.paused.length
          ? `You may have ${row.cues} active cues. The newest ones over that limit are now paused; nothing was deleted:`
          : `You may have ${row.cues ?? 'any number of'} active cues. All of yours keep running.`,
        ...(row.paused.length ? [{ quotes: row.paused }] : []),
        ...(row.paused.length === namesListed && cue_ids.length > namesListed ? [`And ${cue_ids.length - namesListed} more.`] : []),
        ...(row.paused.length ? [`To resume one of them, pause or delete another cue first.${isSold ? '' : ` ${setByOperator}`}`] : [])
      ],
      why: 'This mail is sent when an account changes to a smaller plan, or gets a lower limit of cues.'
    })),

  payment_failed: async ({ account_id, next_attempt_at }) =>
    mailOf(await fn.mailPaymentFailed({ account_id }), row => ({
      subject: `Payment for your ${row.plan} plan failed`,
      blocks: [
        next_attempt_at
          ? `We will retry it on ${spoken(new Date(next_attempt_at))}. You keep the plan until the last retry fails.`
          : 'It will not be retried automatically.',
        'To update your payment method or change your plan:',
        { link: upgradeUrl(baseUrl), label: 'Manage billing' },
        `With the API: POST ${baseUrl}/v1/billing/portal.`
      ],
      why: 'This mail is sent when a payment for an account fails.'
    }))
})

/** By mail_downgrade. */
const namesListed = 100
const lastOfHour = 'This is the tenth such mail within an hour. You get no more until the hour has passed.'
const lastOfDay = 'This is the third such mail within 24 hours. You get no more until they have passed.'
const unconfirmed = 'This address is not confirmed yet, so it gets at most three such mails in 24 hours. To get all of them:'

const after: Record<string, string[]> = {
  paused: ['The cue is paused. To resume it, PATCH its status to active.'],
  failed: ['It was scheduled to run once, and will not run again.']
}
