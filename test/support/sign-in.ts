/** Signing in as a device and a person do, for tests that need the result. */
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { mailServer, sendMails } from './mailbox.ts'
import { build } from './setup.ts'

type Service = Awaited<ReturnType<typeof build>>

export const newDeviceCode = () => randomBytes(16).toString('base64url')
export const formHeaders = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html,*/*;q=0.8' }
export const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()

/** The service with a mail server. No mail is queued at first. */
export const buildWithMail = async (t: Test, start?: string, env: Record<string, string> = {}) => {
  const server = await mailServer(t)
  const service = await build(t, start, { env: { SMTP_URL: server.url, BASE_URL: 'https://pgcue.example', ...env } })
  await service.pool.query("delete from pgboss.job where name = 'mails'") // about the tests' own account
  /** Sends queued mails, and returns those that arrived. */
  const mails = async () => {
    const before = server.mails.length
    await sendMails(service)
    return server.mails.slice(before)
  }
  return { ...service, server, mails, nobody: service.as(null), ...steps(service, mails) }
}

/** The contents of all tables, as one text per table. */
export const everything = async ({ pool }: Pick<Service, 'pool'>): Promise<Record<string, string>> => {
  const { rows } = await pool.query(
    `select oid::regclass::text as name from pg_class
      where relkind = 'r' and relnamespace in ('cue'::regnamespace, 'pgboss'::regnamespace) order by 1`
  )
  const texts: Record<string, string> = {}
  for (const { name } of rows)
    texts[name] = (await pool.query(`select string_agg(x::text, e'\\n') as text from ${name} x`)).rows[0].text ?? ''
  return texts
}

const steps = (service: Service, mails: () => Promise<{ links: string[] }[]>) => {
  const { call, post } = service.as(null)
  /** Starts a sign-in with an address; returns the code and the query parameters of its link. */
  const requestLink = async (email: string, device_code = newDeviceCode()) => {
    await post('/v1/auth/device-code', { device_code })
    await post('/v1/auth/device-code/submit-email', { device_code, email })
    const link = new URL((await mails()).at(-1)!.links[0]!)
    return { device_code, link, path: link.pathname + link.search, fields: Object.fromEntries(link.searchParams) }
  }
  const confirm = (fields: Record<string, string>) => call('POST', '/v1/auth/verify', form(fields), formHeaders)
  const poll = (device_code: string) => post('/v1/auth/device-code/poll', { device_code })
  /** Completes a sign-in with this address, and returns what the device gets. */
  const signIn = async (email: string): Promise<{ status: string; email: string; session_token: string; api_key?: string }> => {
    const { device_code, fields } = await requestLink(email)
    await confirm(fields)
    return poll(device_code)
  }
  /** A session's JWT for this address. */
  const openSession = async (email: string): Promise<string> => {
    const { session_token: token } = await signIn(email)
    return (await post('/v1/auth/session', { token })).session_token
  }
  /** The calls of a session. */
  const withSession = (jwt: string) => service.as({ id: '', email: '', api_key: jwt })
  return { requestLink, confirm, poll, signIn, openSession, withSession }
}
