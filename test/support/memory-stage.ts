/** Setup for tests of the memory block: a service whose account has it enabled. */
import type { Test } from 'tap'
import { build } from './setup.ts'

export const noon = '2030-01-15T12:00:00.000Z' // a Tuesday
export const worker = { name: 'work', cron: '0 9 * * *', worker: true }
export const on = { memory_block_enabled: true }
export const off = { memory_block_enabled: false }

export const enabled = async (t: Test, start: string | undefined = noon, env: Record<string, string> = {}) => {
  const service = await build(t, start, { env: { BASE_URL: 'https://cue.example.com', ...env } })
  await service.patch('/v1/auth/me', on)
  const block = () => service.get('/v1/memory-block')
  return { ...service, block, version: async (): Promise<number> => (await block()).version }
}
