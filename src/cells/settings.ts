/** The settings CELLS, ENGINE_CELLS and REGISTER_CELLS, and the configuration of a cell. */
import { readFileSync } from 'node:fs'
import { maxCells } from './ids.ts'

/** The readers of `loadConfig`. */
type Readers = {
  raw: (name: string) => string | null
  read: <T, F>(name: string, fallback: F, must: string, parse: (value: string) => T | undefined) => T | F
  refuse: (name: string, must: string) => never
  postgresUrl: (name: string, fallback: string) => string
}

export const readCells = ({ raw, read, refuse, postgresUrl }: Readers) => {
  const must = `must be PostgreSQL URLs separated by whitespace, ${maxCells} at most, or a file with one per line`
  const urls = read('CELLS', null, must, value => cellUrls(value, text => requireOneServer(text, () => refuse('CELLS', oneServer))))
  if (urls && raw('DATABASE_URL') !== null) refuse('DATABASE_URL', 'cannot be combined with CELLS: make it the first of them')
  if (urls && urls.length > 1 && raw('LISTEN_URL') !== null)
    refuse('LISTEN_URL', 'cannot be combined with several CELLS, whose URLs are direct connections')
  const databases: readonly string[] = urls ?? [postgresUrl('DATABASE_URL', '')]
  const all = [...databases.keys()].map(index => index + 1)
  const numbers = (name: string) =>
    read(name, all, `must be a comma-separated list of numbers of CELLS, from 1 to ${all.length}`, value => cellNumbers(value, all))
  return {
    /** The URLs of CELLS, or that of DATABASE_URL; one empty URL without either. */
    databases,
    /** Numbers of the cells whose cues this replica fires. */
    engineCells: numbers('ENGINE_CELLS'),
    /** Numbers of the cells that get new accounts. */
    registerCells: numbers('REGISTER_CELLS')
  }
}

/** Of several servers, the driver would use the first, or none: it doesn't look for the primary. */
export const requireOneServer = (url: string, refuse: () => never): void => {
  const [, authority = '', query = ''] = /^\w+:\/\/([^/?#]*)[^?#]*(.*)/.exec(url) ?? []
  const hosts = authority.slice(authority.lastIndexOf('@') + 1)
  if (hosts.includes(',') || /[?&](target_session_attrs=|load_balance_hosts=|(host|hostaddr|port)=[^&]*(,|%2c))/i.test(query)) refuse()
}

export const oneServer =
  'takes one server per database: give an address that follows the primary, such as that of a proxy, a virtual IP or a DNS name'

const cellUrls = (value: string, check: (url: string) => void): string[] | undefined => {
  const text = value.includes('://') ? value : readFileSync(value, 'utf8')
  const urls = text.split(/\s+/).filter(Boolean)
  urls.forEach(check)
  return urls.length > 0 && urls.length <= maxCells && new Set(urls).size === urls.length && urls.every(isDatabase) ? urls : undefined
}

const isDatabase = (value: string) => URL.canParse(value) && /^postgres(ql)?:$/.test(new URL(value).protocol)

const cellNumbers = (value: string, all: readonly number[]): number[] | undefined => {
  const numbers = value.split(',').map(Number)
  return numbers.every(number => all.includes(number)) ? [...new Set(numbers)] : undefined
}

type Databases = { cell: number; databases: readonly string[]; databaseUrl: string; listenUrl: string }

/** The configuration of one cell. */
export const cellConfig = <C extends Databases>(config: C, cell: number): Readonly<C> => {
  if (config.databases.length === 1) return config
  const url = config.databases[cell - 1]!
  return Object.freeze({ ...config, cell, databaseUrl: url, listenUrl: url })
}

/** The label of a cell in metrics and log; undefined if the service has one cell only. */
export const labelOf = ({ cell, databases }: Pick<Databases, 'cell' | 'databases'>): number | undefined =>
  databases.length > 1 ? cell : undefined
