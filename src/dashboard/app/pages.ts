/** The page of each path but the first. */
import { type ComponentType, h, type VNode } from 'preact'
import { exec } from 'preact-iso/router'
import { Alerts } from './pages/alerts.tsx'
import { Approvals } from './pages/approvals.tsx'
import { Audit } from './pages/audit.tsx'
import { EditCalendar, NewCalendar } from './pages/calendar-form.tsx'
import { CalendarPage, CalendarsPage } from './pages/calendars.tsx'
import { ChannelsPage } from './pages/channels.tsx'
import { CuePage } from './pages/cue.tsx'
import { EditCue, NewCue } from './pages/cue-form.tsx'
import { CuesPage } from './pages/cues.tsx'
import { Destinations } from './pages/destinations.tsx'
import { Errors } from './pages/errors.tsx'
import { ExecutionPage } from './pages/execution.tsx'
import { ExecutionsPage } from './pages/executions.tsx'
import { GatePage, GatesPage } from './pages/gates.tsx'
import { Inbox } from './pages/inbox.tsx'
import { Keys } from './pages/keys.tsx'
import { OperationPage, OperationsPage } from './pages/operations.tsx'
import { OperatorPage } from './pages/operator.tsx'
import { SessionsPage } from './pages/sessions.tsx'
import { Settings } from './pages/settings.tsx'
import { Support } from './pages/support.tsx'
import { UsagePage } from './pages/usage.tsx'
import { Workers } from './pages/workers.tsx'
import { NotFound } from './ui/page.tsx'

const pages: Record<string, ComponentType<never>> = {
  '/cues': CuesPage,
  '/cues/new': NewCue,
  '/cues/:id': CuePage,
  '/cues/:id/edit': EditCue,
  '/executions': ExecutionsPage,
  '/executions/:id': ExecutionPage,
  '/inbox': Inbox,
  '/approvals': Approvals,
  '/errors': Errors,
  '/destinations': Destinations,
  '/workers': Workers,
  '/alerts': Alerts,
  '/channels': ChannelsPage,
  '/gates': GatesPage,
  '/gates/:gate_key': GatePage,
  '/operations': OperationsPage,
  '/operations/:id': OperationPage,
  '/calendars': CalendarsPage,
  '/calendars/new': NewCalendar,
  '/calendars/:name': CalendarPage,
  '/calendars/:name/edit': EditCalendar,
  '/keys': Keys,
  '/sessions': SessionsPage,
  '/usage': UsagePage,
  '/audit': Audit,
  '/settings': Settings,
  '/support': Support,
  '/operator': OperatorPage
}

export const pageOf = (path: string): VNode => {
  for (const [pattern, page] of Object.entries(pages)) {
    const match = matchOf(path, pattern)
    if (match) return h(page as ComponentType<object>, { key: path, ...match.params })
  }
  return h(NotFound, {})
}

/** A path may be malformed: `%` without a number. */
const matchOf = (path: string, pattern: string) => {
  try {
    return exec(path, pattern)
  } catch {}
}
