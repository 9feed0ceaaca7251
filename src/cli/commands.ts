/** All commands by name. Help lists them in this order. */
import { keysCreate, keysList, keysRevoke, logout, usage, whoami } from './account.ts'
import { alertsAck, alertsList } from './alerts.ts'
import { apply } from './apply.ts'
import { calendarsDelete, calendarsGet, calendarsList, calendarsPut } from './calendars.ts'
import type { Command } from './command.ts'
import { completion } from './completion.ts'
import { cuesCreate, cuesDelete, cuesFire, cuesGet, cuesList, cuesPause, cuesPut, cuesResume, cuesUpdate } from './cues.ts'
import { destinations, errors } from './errors.ts'
import { executionsCancel, executionsDismiss, executionsGet, executionsList, executionsReplay, executionsVerify } from './executions.ts'
import { exportCues } from './export.ts'
import { cuesHistory } from './history.ts'
import { importCues } from './import.ts'
import { listen } from './listen.ts'
import { login } from './login.ts'
import { mcp } from './mcp.ts'
import { backfill, cancel, dismiss, operationsAbort, operationsGet, operationsList, replay } from './operations.ts'
import { operator, operatorHold, operatorRelease } from './operator.ts'
import { overview } from './overview.ts'
import { preview } from './preview.ts'
import { register } from './register.ts'
import { sessionsList, sessionsRevoke } from './sessions.ts'
import { executionsTail } from './tail.ts'
import { dashboard, tour } from './tour.ts'
import { worker } from './worker/command.ts'
import { workersDelete, workersList } from './workers.ts'

export const commands: Readonly<Record<string, Command>> = {
  tour,
  dashboard,
  register,
  login,
  logout,
  whoami,
  overview,
  'cues create': cuesCreate,
  'cues put': cuesPut,
  'cues list': cuesList,
  'cues get': cuesGet,
  'cues history': cuesHistory,
  'cues update': cuesUpdate,
  'cues pause': cuesPause,
  'cues resume': cuesResume,
  'cues fire': cuesFire,
  'cues delete': cuesDelete,
  apply,
  export: exportCues,
  import: importCues,
  preview,
  'calendars put': calendarsPut,
  'calendars list': calendarsList,
  'calendars get': calendarsGet,
  'calendars delete': calendarsDelete,
  'executions list': executionsList,
  'executions tail': executionsTail,
  'executions get': executionsGet,
  'executions replay': executionsReplay,
  'executions cancel': executionsCancel,
  'executions dismiss': executionsDismiss,
  'executions verify': executionsVerify,
  errors,
  destinations,
  replay,
  cancel,
  dismiss,
  backfill,
  'operations list': operationsList,
  'operations get': operationsGet,
  'operations abort': operationsAbort,
  'alerts list': alertsList,
  'alerts ack': alertsAck,
  usage,
  'keys list': keysList,
  'keys create': keysCreate,
  'keys revoke': keysRevoke,
  'sessions list': sessionsList,
  'sessions revoke': sessionsRevoke,
  worker,
  'workers list': workersList,
  'workers delete': workersDelete,
  operator,
  'operator hold': operatorHold,
  'operator release': operatorRelease,
  listen,
  mcp,
  completion: completion(() => commands)
}
