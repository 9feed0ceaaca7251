/**
 * Sends mails from durable jobs, retried until the mail server accepts them. Without SMTP_URL, mails are written to files and their links
 * are logged.
 */
import { randomUUID } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { SendMailOptions, Transporter } from 'nodemailer'
import { createLinks } from '../accounts/links.ts'
import type { Config } from '../config.ts'
import type { Functions } from '../database/functions.ts'
import { makeDirectory } from '../directories.ts'
import type { Failure, Jobs } from '../jobs/boss.ts'
import type { MailJob } from './jobs.ts'
import { createComposer } from './kinds.ts'
import { layOut, linksOf, type Mail } from './layout.ts'

type Options = {
  jobs: Pick<Jobs, 'work'>
  fn: Functions
  config: Config
  decryptKey: (ciphertext: string, purpose: `device_code ${string}`) => string | undefined
  now: () => number
  log: Pick<FastifyBaseLogger, 'info' | 'warn'>
}

/** Milliseconds for connecting to the mail server, its greeting, and each response. */
const patience = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000 }
/** Mails must not include the content of files or URLs. */
const closed = { disableFileAccess: true, disableUrlAccess: true }

/** Starts sending mails. */
export const startMails = async ({ jobs, fn, config, decryptKey, now, log }: Options): Promise<void> => {
  const compose = createComposer({
    fn,
    links: createLinks(config),
    baseUrl: config.baseUrl,
    isSold: Boolean(config.stripeSecretKey),
    decryptKey
  })
  const outbox = join(config.dataDir, 'outbox')
  const deliver = config.smtpUrl ? bySmtp(config.smtpUrl, log) : toOutbox(outbox, log)
  if (!config.smtpUrl) await tryOutbox(outbox, log)
  const host = new URL(config.baseUrl).hostname
  const send = async (job: MailJob, id: string, tries: number): Promise<Failure | undefined> => {
    const mail = await compose(job, tries === 0)
    if (!mail) return void log.info({ kind: job.kind, job_id: id }, 'mail no longer needed')
    const isAccepted = await deliver(
      { kind: job.kind, id, mail },
      message({ mail, id, host, from: config.emailFrom, date: new Date(now()) })
    )
    return isAccepted ? undefined : { tries: tries + 1, isFinal: true }
  }
  await jobs.work('mails', send)
  await jobs.work('magic_links', send)
}

/** The message id is the same for every try, so that duplicates can be recognised if the server's response was lost. */
const message = ({ mail, id, host, from, date }: { mail: Mail; id: string; host: string; from: string; date: Date }): SendMailOptions => ({
  ...layOut(mail),
  from,
  // As an object, it is a single address whatever it contains.
  to: { name: '', address: mail.to },
  date,
  messageId: `<${id}@${host}>`,
  headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' }
})

/** Returns false if the mail was rejected for good. */
type Deliver = (what: { kind: string; id: string; mail: Mail }, options: SendMailOptions) => Promise<boolean>

/** Loaded with the first mail: the package takes 9 MB. */
const createTransport = async (options: object): Promise<Transporter> => {
  const nodemailer = await import('nodemailer')
  return nodemailer.createTransport({ ...options, ...closed })
}

const bySmtp = (url: string, log: Options['log']): Deliver => {
  let transport: Promise<Transporter> | undefined
  return async ({ kind, id }, options) => {
    const start = performance.now()
    try {
      transport ??= createTransport({ url, ...patience })
      await (await transport).sendMail(options)
      log.info({ kind, job_id: id, ms: Math.round(performance.now() - start) }, 'mail sent')
      return true
    } catch (error) {
      // The server's message may contain the recipient's address, so it is kept out of the log and the job.
      const { code, responseCode = null } = error as { code?: string; responseCode?: number }
      const isRefused = (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== null && responseCode >= 500
      log.warn(
        { kind, job_id: id, code, response_code: responseCode },
        isRefused ? 'mail permanently rejected' : 'mail not sent, will retry'
      )
      if (!isRefused) throw new Error(`the mail server rejected the mail: ${code ?? 'unknown'} ${responseCode ?? ''}`.trim())
      return false
    }
  }
}

/** Mails are written long after the start, when nobody looks at the log. */
const tryOutbox = async (dir: string, log: Options['log']): Promise<void> => {
  const draft = join(dir, `.${randomUUID()}`)
  try {
    makeDirectory(dir, 0o700)
    await writeFile(draft, 'A file without content fits on a full disk.')
    await rm(draft)
  } catch (error) {
    log.warn({ err: error, dir }, 'outbox cannot be written and SMTP_URL is not set: mails will be lost')
  }
}

const toOutbox = (dir: string, log: Options['log']): Deliver => {
  let transport: Promise<Transporter> | undefined
  return async ({ kind, id, mail }, options) => {
    transport ??= createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
    const { message } = await (await transport).sendMail(options)
    const file = join(dir, `${(options.date as Date).toISOString().replace(/[:.]/g, '-')}-${kind}-${id.slice(0, 8)}.eml`)
    const draft = join(dir, `.${randomUUID()}`)
    // Its links give access to accounts, so only the owner may read it. Written atomically.
    makeDirectory(dir, 0o700)
    await writeFile(draft, message as Buffer, { mode: 0o600 })
    await rename(draft, file)
    log.info({ kind, file, links: linksOf(mail) }, 'mail written to the outbox; set SMTP_URL to send mails')
    return true
  }
}
