/** A real mail server on this machine, the mails it received as people read them, and a way to send queued mails. */
import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import { pino } from 'pino'
import { SMTPServer } from 'smtp-server'
import type { Test } from 'tap'
import { decryptKey } from '../../src/accounts/keys.ts'
import type { Config } from '../../src/config.ts'
import type { Functions } from '../../src/database/functions.ts'
import type { Failure } from '../../src/jobs/boss.ts'
import type { MailJob } from '../../src/mails/jobs.ts'
import { startMails } from '../../src/mails/mail.ts'
import { eventually } from './eventually.ts'

export type Received = ReturnType<typeof readMail> & { from: string; recipients: string[] }
/** The server's response to a recipient; undefined accepts it. */
type Judge = (recipient: string) => { code: number; text: string } | undefined

/** An SMTP server that keeps the mails it receives. `judge` may refuse recipients. Closed at the end of the test. */
export const mailServer = async (t: Test, { judge: first = () => undefined }: { judge?: Judge } = {}) => {
  const mails: Received[] = []
  let judge = first
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onRcptTo: ({ address }, _, done) => {
      const refusal = judge(address)
      done(refusal && Object.assign(new Error(refusal.text), { responseCode: refusal.code }))
    },
    onData: async (stream, { envelope }, done) => {
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk as Buffer)
      mails.push({
        ...readMail(Buffer.concat(chunks).toString()),
        from: envelope.mailFrom ? envelope.mailFrom.address : '',
        recipients: envelope.rcptTo.map(({ address }) => address)
      })
      done()
    }
  })
  server.on('error', () => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  let closed: Promise<void> | undefined
  const close = () => (closed ??= new Promise(resolve => server.close(resolve)))
  t.teardown(close)
  return {
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    mails,
    close,
    judge: (next: Judge) => {
      judge = next
    },
    /** Waits until this many have arrived, and returns the last one. */
    received: async (count = 1): Promise<Received> => {
      await eventually(() => mails.length >= count)
      return mails[count - 1]!
    }
  }
}

type Service = { config: Config; fn: Functions; pool: pg.Pool; app: { now: () => Date } }

/**
 * Runs the queued mail jobs as an engine would, by the service's clock, each job once. Failed jobs remain queued.
 * Returns the errors and the log.
 */
export const sendMails = async ({ config, fn, pool, app }: Service, env: Partial<Config> = {}) => {
  const log: Record<string, unknown>[] = []
  const handlers = new Map<string, (data: MailJob, id: string, tries: number) => Promise<Failure | undefined>>()
  await startMails({
    jobs: { work: async (queue, handle) => void handlers.set(queue, handle as never) },
    fn,
    config: { ...config, ...env },
    decryptKey: (ciphertext, purpose) => decryptKey(config.encryptionKeys, ciphertext, purpose),
    now: () => app.now().getTime(),
    log: pino({}, { write: line => void log.push(JSON.parse(line)) })
  })
  const errors: Error[] = []
  const failures: Failure[] = []
  const { rows } = await pool.query(
    `select id, name, data, retry_count from pgboss.job where name = any ($1) and state < 'active' order by created_on, id`,
    [[...handlers.keys()]]
  )
  for (const { id, name, data, retry_count } of rows) {
    try {
      const failure = await handlers.get(name)!(data, id, retry_count)
      if (failure) failures.push(failure)
      await pool.query('delete from pgboss.job where name = $1 and id = $2', [name, id])
    } catch (error) {
      errors.push(error as Error)
      await pool.query("update pgboss.job set state = 'retry', retry_count = retry_count + 1 where name = $1 and id = $2", [name, id])
    }
  }
  return { errors, failures, log, sent: rows.length - errors.length }
}

/** A message as its reader sees it: headers by lower-case name, both texts, and the links in the plain text. */
export const readMail = (raw: string) => {
  const { headers, body } = split(raw)
  const boundary = /boundary="?([^";]+)/.exec(headers['content-type'] ?? '')?.[1]
  const parts = Object.fromEntries(
    (boundary ? body.split(`--${boundary}`).slice(1, -1) : [raw]).map(part => {
      const { headers: own, body: encoded } = split(part.replace(/^\r?\n/, ''))
      return [/^[^;]+/.exec(own['content-type'] ?? 'text/plain')![0], decode(encoded, own['content-transfer-encoding'])]
    })
  )
  const text = parts['text/plain'] ?? ''
  return {
    raw,
    headers,
    subject: decodeHeader(headers.subject ?? ''),
    text,
    html: parts['text/html'] ?? '',
    links: [...text.matchAll(/^https?:\/\/\S+$/gm)].map(([link]) => link)
  }
}

const split = (raw: string) => {
  const [, head = '', body = ''] = /^([\s\S]*?)\r?\n\r?\n([\s\S]*)$/.exec(raw) ?? []
  const lines = head.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)
  const headers: Record<string, string> = {}
  for (const line of lines) headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim()
  return { headers, body }
}

const bytes = (quoted: string) => quoted.replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))

const decode = (body: string, encoding = '7bit') => {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  return (encoding === 'quoted-printable' ? Buffer.from(bytes(body.replace(/=\r?\n/g, '')), 'latin1').toString() : body).replaceAll(
    '\r\n',
    '\n'
  )
}

const decodeHeader = (text: string) =>
  text
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?UTF-8\?([QB])\?(.*?)\?=/gi, (_, kind, encoded) =>
      kind.toUpperCase() === 'B'
        ? Buffer.from(encoded, 'base64').toString()
        : Buffer.from(bytes(encoded.replaceAll('_', ' ')), 'latin1').toString()
    )
