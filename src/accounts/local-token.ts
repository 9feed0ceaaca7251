/** One-time tokens of the link that an embedded start prints, accepted from the same machine only. */
import ipaddr from 'ipaddr.js'
import { createToken } from './sessions.ts'

const prefix = 'local-'

export const createLocalToken = (): string => prefix + createToken()

/** The prefix is part of the token that is hashed, so it cannot be removed. */
export const isLocalToken = (token: string): boolean => token.startsWith(prefix)

export const isLoopback = (address: string): boolean => ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
