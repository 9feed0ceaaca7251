/** `pgcue tour` and `pgcue dashboard`: the first minutes with a service. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Client } from '../client/index.ts'
import { pause } from '../client/transport.ts'
import { command } from './command.ts'
import { CliError } from './exit-codes.ts'
import type { Io } from './io.ts'

const patienceMs = 30_000

type Link = { url: string; expires_at: string }
const linkOf = (client: Client): Promise<Link> => client.call<Link>('POST', '/v1/auth/dashboard-link')

export const dashboard = command({
  notes: 'The link works once, within 15 minutes. The key needs the scope account.',
  run: async ({ connect, out, io }) => {
    const link = await linkOf(connect())
    if (!out.json && io.stdout.isTTY) openBrowser(link.url, io.env)
    return link
  },
  text: ({ url }) => url
})

/** Does nothing on a machine without a desktop, or from afar. */
const openBrowser = (url: string, env: Io['env']): void => {
  if (env.SSH_CONNECTION || env.CI) return
  const opener = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? (env.DISPLAY || env.WAYLAND_DISPLAY ? 'xdg-open' : '')
  if (opener)
    spawn(opener, [url], { stdio: 'ignore', detached: true })
      .on('error', () => {})
      .unref()
}

const quoted = (word: string) => (/^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

export const tour = command({
  notes: 'It needs an account: the local one of npm start, or that of pgcue login. The cue stays; run again, the tour uses it again.',
  run: async ({ out, another, connect }) => {
    if (out.json) throw new CliError('The tour is for people: run it without --json.')
    const client = connect()
    const paragraph = (text: string) => ['', text].map(line => out.line(line))
    /** Shows a command and runs it. */
    const step = async (text: string, ...argv: string[]) => {
      paragraph(text)
      out.line(`$ npx pgcue ${argv.map(quoted).join(' ')}`, 'bold')
      if ((await another(argv)) !== 0) throw new CliError('The tour ends here.')
    }
    out.line(`A tour of pgcue at ${client.baseUrl}, in three commands.`)
    const token = `tour-${randomBytes(12).toString('hex')}`
    await step(
      'A cue says when something is due and what happens then. This one sends a webhook at 9:00 on weekdays, to the echo buffer of this service, which keeps what it gets for 5 minutes:',
      ...['cues', 'put', 'tour', 'hello', '--cron', '0 9 * * 1-5'],
      ...['--url', `${client.baseUrl}/v1/echo/${token}`, '--payload', '{"task": "hello"}']
    )
    const { id } = await client.cues.getByKey('tour')
    await step('Fire it now, without waiting for 9:00. That creates an execution, which an engine delivers:', 'cues', 'fire', id)
    paragraph('This arrived, signed so that the receiver can trust it:')
    for (const line of JSON.stringify(await arrived(client, token), null, 2).split('\n')) out.line(line)
    const { id: execution } = await ended(client, id)
    await step('The execution has each attempt, and its result:', 'executions', 'get', execution)
    const { url } = await linkOf(client)
    paragraph('The same in the dashboard, signed in (the link works once, within 15 minutes; `npx pgcue dashboard` prints another):')
    out.line(url.replace('/dashboard#', `/dashboard/executions/${execution}#`), 'bold')
  }
})

/** What the echo buffer got. */
const arrived = (client: Client, token: string) =>
  until(async () => {
    const { status, ...echo } = await client.call<{ status: string }>('GET', `/v1/echo/${token}`)
    return status === 'delivered' ? echo : undefined
  })

/** The latest execution of a cue, once its result is recorded. */
const ended = (client: Client, cue_id: string) =>
  until(async () => (await client.executions.list({ cue_id, limit: 1 })).executions.find(({ status }) => status === 'success'))

const until = async <T>(read: () => Promise<T | undefined>): Promise<T> => {
  for (const end = Date.now() + patienceMs; Date.now() < end; await pause(300)) {
    const result = await read()
    if (result !== undefined) return result
  }
  throw new CliError('Nothing arrived within 30 seconds. Is an engine running? See: pgcue executions list')
}
