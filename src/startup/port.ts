/** Where a replica listens. HOST and PORT are checked before start-up records anything. */
import { type Config, ConfigError } from '../config.ts'
import { freePort } from '../embedded-postgres/embedded-postgres.ts'

/**
 * PORT, or the free one that 0 stands for.
 * @throws {ConfigError} when nothing can listen there
 */
export const findPort = (config: Pick<Config, 'host' | 'port'>): Promise<number> =>
  freePort(config.host, config.port).catch(error => refuseToListen(error, config))

/** @throws {ConfigError} when HOST or PORT is at fault for what `listen` rejected with; else that error */
export const refuseToListen = (error: unknown, { port }: Pick<Config, 'port'>): never => {
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') throw new ConfigError(`PORT ${port} is already in use; stop the other process or set another PORT`)
  if (code === 'EACCES') throw new ConfigError(`PORT ${port} is reserved for privileged users; set another PORT, such as 8080`)
  if (/^(EADDRNOTAVAIL|EAFNOSUPPORT|EINVAL|ENOTFOUND|EAI_AGAIN)$/.test(code))
    throw new ConfigError('HOST is not an address of this machine; set 127.0.0.1 for local access only, or 0.0.0.0 for all interfaces')
  throw error
}
