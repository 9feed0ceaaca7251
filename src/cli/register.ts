/** `pgcue register` */
import { createClient } from '../client/index.ts'
import { command, only } from './command.ts'
import { storedEmail, storeKey } from './credentials.ts'
import { CliError } from './exit-codes.ts'
import { userAgent } from './version.ts'

export const register = command({
  args: 'EMAIL',
  summary: 'Create an account and store its key',
  names: { email: 'EMAIL' },
  notes: `The key is stored for the service it belongs to, readable by you alone; with --json it is also printed.
For an existing account, run: pgcue login`,
  run: async context => {
    const { out, io } = context
    const given = only(context, 'EMAIL')
    const base_url = await context.baseUrl()
    const stored = storedEmail(io.env, base_url)
    // Storing a new key would lose the old one.
    if (stored !== undefined) throw new CliError(`A key of ${stored} is already stored for ${base_url}. To remove it, run: pgcue logout`)
    const { email, api_key, plan } = await createClient({ baseUrl: base_url, userAgent }).register(given)
    const stored_in = storeKey(io.env, base_url, { api_key, email })
    out.show({ email, plan, base_url, api_key, stored_in }, () =>
      out.line(`Registered ${email} at ${base_url}, plan ${plan}; the key is in ${stored_in}`)
    )
  }
})
