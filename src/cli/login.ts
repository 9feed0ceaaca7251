/** `pgcue register` and `pgcue login`, which gets a key for this machine through a link in a mail, or stores an existing one. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Client, type CreatedDeviceCode, PgcueError, type PolledDeviceCode } from '../client/index.ts'
import { pause } from '../client/transport.ts'
import { type Context, command } from './command.ts'
import { localIn, storedEmail, storeKey } from './credentials.ts'
import { CliError, UsageError } from './exit-codes.ts'
import { readAll } from './json.ts'
import { printable } from './printable.ts'

/** The limit is 30 polls per minute. */
const pollMs = 2500

export const login = command({
  options: {
    email: { type: 'string', value: 'ADDRESS', help: 'send the link to this address (default: a web page asks for it)' },
    'with-key': { type: 'boolean', help: 'store an existing key, read from standard input' },
    local: { type: 'boolean', help: 'store the key of the local account of npm start, in DATA_DIR (default: .data)' }
  },
  names: { email: '--email' },
  notes: `The key is stored for this service only, readable by you alone. PGCUE_API_KEY overrides it.`,
  run: async context => {
    const { args, options, out, io } = context
    if ([options.email, options['with-key'], options.local].filter(Boolean).length > 1)
      throw new UsageError('give only one of --email, --with-key and --local')
    if (args.length > 0 && !options.local) throw new UsageError('DATA_DIR requires --local')
    const local = options.local ? localAccount(args[0]) : undefined
    const baseUrl = local?.base_url ?? (await context.baseUrl())
    const clientWith = (apiKey?: string) => context.clientWith(baseUrl, apiKey)
    const api_key = local ? local.api_key : options['with-key'] ? (await readAll(io.stdin)).trim() : await keyByMail(context, clientWith)
    if (!api_key) throw new UsageError('no key on standard input')
    const { email } = await clientWith(api_key).me()
    const file = storeKey(io.env, baseUrl, { api_key, email })
    out.show({ email, base_url: baseUrl, stored_in: file }, () => out.line(`Logged in to ${baseUrl} as ${email}; the key is in ${file}`))
  }
})

export const register = command({
  names: { email: 'EMAIL' },
  notes: `The key is stored for the service it belongs to, readable by you alone; with --json it is also printed.
For an existing account, run: pgcue login`,
  run: async ({ args, baseUrl, clientWith, io, out }) => {
    const base_url = await baseUrl()
    const stored = storedEmail(io.env, base_url)
    // Storing a new key would lose the old one.
    if (stored !== undefined) throw new CliError(`A key of ${stored} is already stored for ${base_url}. To remove it, run: pgcue logout`)
    const { email, api_key, plan } = await clientWith(base_url).register(args[0]!)
    const stored_in = storeKey(io.env, base_url, { api_key, email })
    out.show({ email, plan, base_url, api_key, stored_in }, () =>
      out.line(`Registered ${email} at ${base_url}, plan ${plan}; the key is in ${stored_in}`)
    )
  }
})

const localAccount = (dataDir = '.data') => {
  const local = localIn(dataDir)
  if (!local)
    throw new CliError(`No local account in ${dataDir} that you own. Run npm start in the clone's folder, or pass the service's DATA_DIR.`)
  return local
}

const keyByMail = async (
  { options, io, out }: { options: { email?: string } } & Pick<Context, 'io' | 'out'>,
  clientWith: (apiKey?: string) => Client
): Promise<string> => {
  const client = clientWith()
  const device_code = randomBytes(18).toString('base64url')
  const created = await start(client, device_code)
  const tell = (text: string) => io.stderr.write(out.json ? '' : `${text}\n`)
  if (options.email) {
    await client.auth.submitEmail(device_code, options.email)
    tell(`We sent a link to ${options.email}.`)
  } else {
    io.stderr.write(`Open ${printable(created.verification_url)}\n`)
  }
  tell(`Check that the page shows this code: ${device_code}\nWaiting for you to confirm …`)
  const approved = await waitForApproval(client, created)
  if (approved.api_key) return approved.api_key
  return keyOfSession(clientWith, approved.session_token ?? '')
}

const start = async (client: Client, device_code: string): Promise<CreatedDeviceCode> => {
  try {
    return await client.auth.createDeviceCode(device_code)
  } catch (error) {
    if (!(error instanceof PgcueError && error.code === 'not_found')) throw error
    throw new CliError(
      `${client.baseUrl} does not support login by email. Set PGCUE_API_KEY, or store an existing key: pgcue login --with-key`
    )
  }
}

const waitForApproval = async (client: Client, { device_code, expires_in }: CreatedDeviceCode): Promise<PolledDeviceCode> => {
  for (const end = Date.now() + expires_in * 1000; Date.now() < end; await pause(pollMs)) {
    const answer = await client.auth.pollDeviceCode(device_code)
    if (answer.status === 'approved') return answer
    if (answer.status === 'claimed') throw new CliError('This login was already used. Run pgcue login again.')
    if (answer.status === 'expired') break
  }
  throw new CliError('Login not confirmed in time. Run pgcue login again.')
}

/** Creates a separate key for this machine, which can be revoked on its own; the session is not needed any more. */
const keyOfSession = async (clientWith: (apiKey?: string) => Client, token: string): Promise<string> => {
  const { session_token } = await clientWith().auth.openSession(token)
  const session = clientWith(session_token)
  const { api_key } = await session.keys.create({ label: `pgcue on ${hostname()}`.slice(0, 100) })
  await session.auth.endSession()
  return api_key
}
