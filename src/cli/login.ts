/** `pgcue register` and `pgcue login`, which gets a key for this machine through a link in a mail, or stores an existing one. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Client, PgcueError } from '../client/index.ts'
import { pause } from '../client/transport.ts'
import { type Context, command } from './command.ts'
import { localIn, storedEmail, storeKey } from './credentials.ts'
import { CliError, UsageError } from './exit-codes.ts'
import { readAll } from './io.ts'
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
    const { args, options, io } = context
    if ([options.email, options['with-key'], options.local].filter(Boolean).length > 1)
      throw new UsageError('give only one of --email, --with-key and --local')
    if (args.length > 0 && !options.local) throw new UsageError('DATA_DIR requires --local')
    const local = options.local ? localAccount(args[0]) : undefined
    const baseUrl = local?.base_url ?? context.baseUrl()
    const clientWith = (apiKey?: string) => context.clientWith(baseUrl, apiKey)
    const api_key = local ? local.api_key : options['with-key'] ? (await readAll(io.stdin)).trim() : await keyByMail(context, clientWith)
    if (!api_key) throw new UsageError('no key on standard input')
    const { email } = await clientWith(api_key).me()
    return { email, base_url: baseUrl, stored_in: storeKey(io.env, baseUrl, { api_key, email }) }
  },
  text: ({ email, base_url, stored_in }) => `Logged in to ${base_url} as ${email}; the key is in ${stored_in}`
})

export const register = command({
  names: { email: 'EMAIL' },
  notes: `The key is stored for the service it belongs to, readable by you alone; with --json it is also printed.
For an existing account, run: pgcue login`,
  run: async ({ args, baseUrl, clientWith, io }) => {
    const base_url = baseUrl()
    const stored = storedEmail(io.env, base_url)
    // Storing a new key would lose the old one.
    if (stored !== undefined) throw new CliError(`A key of ${stored} is already stored for ${base_url}. To remove it, run: pgcue logout`)
    const { email, api_key, plan } = await clientWith(base_url).register(args[0]!)
    return { email, plan, base_url, api_key, stored_in: storeKey(io.env, base_url, { api_key, email }) }
  },
  text: ({ email, base_url, plan, stored_in }) => `Registered ${email} at ${base_url}, plan ${plan}; the key is in ${stored_in}`
})

const localAccount = (dataDir = '.data') => {
  const local = localIn(dataDir)
  if (!local)
    throw new CliError(`No local account in ${dataDir} that you own. Run npm start in the clone's folder, or pass the service's DATA_DIR.`)
  return local
}

type Connect = (apiKey?: string) => Client

const keyByMail = async ({ options, io, out }: Pick<Context, 'options' | 'io' | 'out'>, clientWith: Connect): Promise<string> => {
  const client = clientWith()
  const device_code = randomBytes(18).toString('base64url')
  const { verification_url, expires_in } = await client.auth.createDeviceCode(device_code).catch(error => {
    if (!(error instanceof PgcueError && error.code === 'not_found')) throw error
    const instead = 'Set PGCUE_API_KEY, or store an existing key: pgcue login --with-key'
    throw new CliError(`${client.baseUrl} does not support login by email. ${instead}`)
  })
  const say = (text: string) => io.stderr.write(out.json ? '' : `${text}\n`)
  if (options.email) {
    await client.auth.submitEmail(device_code, String(options.email))
    say(`We sent a link to ${options.email}.`)
  } else io.stderr.write(`Open ${printable(verification_url)}\n`)
  say(`Check that the page shows this code: ${device_code}\nWaiting for you to confirm …`)
  for (const end = Date.now() + expires_in * 1000; Date.now() < end; await pause(pollMs)) {
    const { status, api_key, session_token = '' } = await client.auth.pollDeviceCode(device_code)
    if (status === 'approved') return api_key || keyOfSession(clientWith, session_token)
    if (status === 'claimed') throw new CliError('This login was already used. Run pgcue login again.')
    if (status === 'expired') break
  }
  throw new CliError('Login not confirmed in time. Run pgcue login again.')
}

/** Creates a separate key for this machine, which can be revoked on its own; the session is not needed any more. */
const keyOfSession = async (clientWith: Connect, token: string): Promise<string> => {
  const { session_token } = await clientWith().auth.openSession(token)
  const session = clientWith(session_token)
  const { api_key } = await session.keys.create({ label: `pgcue on ${hostname()}`.slice(0, 100) })
  await session.auth.endSession()
  return api_key
}
