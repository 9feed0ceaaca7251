/** The page of each path but the first. */
import type { VNode } from 'preact'
import { h } from './h.ts'
import { Alerts } from './pages/alerts.ts'
import { Audit } from './pages/audit.ts'
import { EditCalendar, NewCalendar } from './pages/calendar-form.ts'
import { CalendarPage, CalendarsPage } from './pages/calendars.ts'
import { CuePage } from './pages/cue.ts'
import { EditCue, NewCue } from './pages/cue-form.ts'
import { CuesPage } from './pages/cues.ts'
import { Destinations } from './pages/destinations.ts'
import { Errors } from './pages/errors.ts'
import { ExecutionPage } from './pages/execution.ts'
import { ExecutionsPage } from './pages/executions.ts'
import { Inbox } from './pages/inbox.ts'
import { Keys } from './pages/keys.ts'
import { OperationPage, OperationsPage } from './pages/operations.ts'
import { OperatorPage } from './pages/operator.ts'
import { SessionsPage } from './pages/sessions.ts'
import { Settings } from './pages/settings.ts'
import { Support } from './pages/support.ts'
import { UsagePage } from './pages/usage.ts'
import { Workers } from './pages/workers.ts'
import { NotFound } from './ui/frame.ts'

const pages: [RegExp, (id: string) => VNode][] = [
  [/^\/cues$/, () => h(CuesPage, {})],
  [/^\/cues\/new$/, () => h(NewCue, {})],
  [/^\/cues\/([^/]+)$/, id => h(CuePage, { key: id, id })],
  [/^\/cues\/([^/]+)\/edit$/, id => h(EditCue, { key: id, id })],
  [/^\/executions$/, () => h(ExecutionsPage, {})],
  [/^\/executions\/([^/]+)$/, id => h(ExecutionPage, { key: id, id })],
  [/^\/inbox$/, () => h(Inbox, {})],
  [/^\/errors$/, () => h(Errors, {})],
  [/^\/destinations$/, () => h(Destinations, {})],
  [/^\/workers$/, () => h(Workers, {})],
  [/^\/alerts$/, () => h(Alerts, {})],
  [/^\/operations$/, () => h(OperationsPage, {})],
  [/^\/operations\/([^/]+)$/, id => h(OperationPage, { key: id, id })],
  [/^\/calendars$/, () => h(CalendarsPage, {})],
  [/^\/calendars\/new$/, () => h(NewCalendar, {})],
  [/^\/calendars\/([^/]+)$/, name => h(CalendarPage, { key: name, name })],
  [/^\/calendars\/([^/]+)\/edit$/, name => h(EditCalendar, { key: name, name })],
  [/^\/keys$/, () => h(Keys, {})],
  [/^\/sessions$/, () => h(SessionsPage, {})],
  [/^\/usage$/, () => h(UsagePage, {})],
  [/^\/audit$/, () => h(Audit, {})],
  [/^\/settings$/, () => h(Settings, {})],
  [/^\/support$/, () => h(Support, {})],
  [/^\/operator$/, () => h(OperatorPage, {})]
]

export const pageOf = (path: string): VNode => {
  for (const [pattern, page] of pages) {
    const match = pattern.exec(path)
    if (match) return page(decode(match[1] ?? ''))
  }
  return h(NotFound, {})
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
