/** Creates GitHub issues for tickets from durable jobs. Without a tracker, tickets are only stored. */
import type { FastifyBaseLogger } from 'fastify'
import { type Config, version } from '../config.ts'
import type { Functions } from '../database/functions.ts'
import type { Jobs } from '../jobs/boss.ts'
import { issueOf, marker } from './issue.ts'

type Settings = Pick<Config, 'supportGithubRepo' | 'supportGithubToken' | 'githubApiBase'>
type Options = { jobs: Jobs; fn: Pick<Functions, 'beginIssue' | 'endIssue'>; config: Settings; log: FastifyBaseLogger }
type Issue = { html_url: string; body?: string | null }

const timeoutMs = 15_000

export const hasTracker = ({ supportGithubRepo, supportGithubToken }: Settings): boolean => Boolean(supportGithubRepo && supportGithubToken)

export const startTracker = async ({ jobs, fn, config, log }: Options): Promise<void> => {
  /** @throws {Error} unless the response is 2xx; the job is then retried */
  const ask = async <T>(method: string, query: string, body?: object): Promise<T> => {
    const response = await fetch(`${config.githubApiBase}/repos/${config.supportGithubRepo}/issues${query}`, {
      method,
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error', // a redirected POST would become a GET
      headers: {
        accept: 'application/vnd.github+json',
        authorization: `Bearer ${config.supportGithubToken}`,
        'user-agent': `pgcue/${version}`,
        'x-github-api-version': '2022-11-28',
        ...(body && { 'content-type': 'application/json' })
      },
      ...(body && { body: JSON.stringify(body) })
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw new Error(`issue tracker returned ${response.status}`)
    }
    return (await response.json()) as T
  }

  /** Finds an issue whose response was lost, or that was not recorded before a crash. */
  const find = async (ticket_id: number, since: Date): Promise<Issue | undefined> => {
    const query = new URLSearchParams({ state: 'all', sort: 'created', direction: 'asc', per_page: '100', since: since.toISOString() })
    const issues = await ask<Issue[]>('GET', `?${query}`)
    return issues.find(({ body }) => body?.trimEnd().endsWith(marker(ticket_id)))
  }

  const track = async (ticket_id: number): Promise<void> => {
    if (!hasTracker(config)) throw new Error('no issue tracker is configured on this replica')
    const ticket = await fn.beginIssue({ ticket_id })
    if (!ticket) return
    const existing = ticket.tried ? await find(ticket_id, ticket.created_at) : undefined
    const { html_url } = existing ?? (await ask<Issue>('POST', '', issueOf(ticket)))
    await fn.endIssue({ ticket_id, url: html_url })
    log.info({ ticket_id }, 'issue created for ticket')
  }

  await jobs.work<{ ticket_id: number }>('tickets', ({ ticket_id }) => track(ticket_id))
}
