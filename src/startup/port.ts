/** Determines the address and the port of a replica. HOST and PORT are checked before startup records anything. */
import { lookup } from 'node:dns/promises'
import { type Config, ConfigError } from '../config.ts'
import { freePort } from '../embedded-postgres/embedded-postgres.ts'

/**
 * Returns PORT, or a free port for 0.
 * @throws {ConfigError} if listening there is impossible
 */
export const findPort = (config: Pick<Config, 'host' | 'port'>): Promise<number> =>
  freePort(config.host, config.port).catch(error => refuseToListen(error, config))

/**
 * Returns the address of HOST: a name doesn't show whether only this machine can connect. `localhost` may have two.
 * @throws {ConfigError} if it has none
 */
export const findAddress = async (config: Pick<Config, 'host' | 'port'>): Promise<string> =>
  config.host === 'localhost' ? config.host : (await lookup(config.host).catch(error => refuseToListen(error, config))).address

/** @throws {ConfigError} if HOST or PORT caused the error of `listen`; otherwise rethrows it */
export const refuseToListen = (error: unknown, { port }: Pick<Config, 'port'>): never => {
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') throw new ConfigError(`PORT ${port} is already in use; stop the other process or set another PORT`)
  if (code === 'EACCES') throw new ConfigError(`PORT ${port} is reserved for privileged users; set another PORT, such as 8080`)
  if (/^(EADDRNOTAVAIL|EAFNOSUPPORT|EINVAL|ENOTFOUND|EAI_AGAIN)$/.test(code))
    throw new ConfigError('HOST is not an address of this machine; set 127.0.0.1 for local access only, or 0.0.0.0 for all interfaces')
  throw error
}
