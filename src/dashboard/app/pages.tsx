/** The page of each path but the first. */
import type { VNode } from 'preact'

import { Alerts } from './pages/alerts.tsx'
import { Audit } from './pages/audit.tsx'
import { EditCalendar, NewCalendar } from './pages/calendar-form.tsx'
import { CalendarPage, CalendarsPage } from './pages/calendars.tsx'
import { CuePage } from './pages/cue.tsx'
import { EditCue, NewCue } from './pages/cue-form.tsx'
import { CuesPage } from './pages/cues.tsx'
import { Destinations } from './pages/destinations.tsx'
import { Errors } from './pages/errors.tsx'
import { ExecutionPage } from './pages/execution.tsx'
import { ExecutionsPage } from './pages/executions.tsx'
import { Inbox } from './pages/inbox.tsx'
import { Keys } from './pages/keys.tsx'
import { OperationPage, OperationsPage } from './pages/operations.tsx'
import { OperatorPage } from './pages/operator.tsx'
import { SessionsPage } from './pages/sessions.tsx'
import { Settings } from './pages/settings.tsx'
import { Support } from './pages/support.tsx'
import { UsagePage } from './pages/usage.tsx'
import { Workers } from './pages/workers.tsx'
import { NotFound } from './ui/frame.tsx'

const pages: [RegExp, (id: string) => VNode][] = [
  [/^\/cues$/, () => <CuesPage />],
  [/^\/cues\/new$/, () => <NewCue />],
  [/^\/cues\/([^/]+)$/, id => <CuePage key={id} id={id} />],
  [/^\/cues\/([^/]+)\/edit$/, id => <EditCue key={id} id={id} />],
  [/^\/executions$/, () => <ExecutionsPage />],
  [/^\/executions\/([^/]+)$/, id => <ExecutionPage key={id} id={id} />],
  [/^\/inbox$/, () => <Inbox />],
  [/^\/errors$/, () => <Errors />],
  [/^\/destinations$/, () => <Destinations />],
  [/^\/workers$/, () => <Workers />],
  [/^\/alerts$/, () => <Alerts />],
  [/^\/operations$/, () => <OperationsPage />],
  [/^\/operations\/([^/]+)$/, id => <OperationPage key={id} id={id} />],
  [/^\/calendars$/, () => <CalendarsPage />],
  [/^\/calendars\/new$/, () => <NewCalendar />],
  [/^\/calendars\/([^/]+)$/, name => <CalendarPage key={name} name={name} />],
  [/^\/calendars\/([^/]+)\/edit$/, name => <EditCalendar key={name} name={name} />],
  [/^\/keys$/, () => <Keys />],
  [/^\/sessions$/, () => <SessionsPage />],
  [/^\/usage$/, () => <UsagePage />],
  [/^\/audit$/, () => <Audit />],
  [/^\/settings$/, () => <Settings />],
  [/^\/support$/, () => <Support />],
  [/^\/operator$/, () => <OperatorPage />]
]

export const pageOf = (path: string): VNode => {
  for (const [pattern, page] of pages) {
    const match = pattern.exec(path)
    if (match) return page(decode(match[1] ?? ''))
  }
  return <NotFound />
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
