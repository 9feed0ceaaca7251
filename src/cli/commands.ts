/** All commands, in the groups and the order of help. What a command needs to run is loaded when it runs. */
import type { Command } from './command.ts'

export type Entry = {
  /** Arguments, such as `<CUE> [ID...]`. */
  args: string
  summary: string
  load: () => Promise<Command>
}

const account = () => import('./account.ts')
const calendars = () => import('./calendars.ts')
const cues = () => import('./cues.ts')
const executions = () => import('./executions.ts')
const operations = () => import('./operations.ts')
const operator = () => import('./operator.ts')
const tour = () => import('./tour.ts')

export const groups: Readonly<Record<string, Readonly<Record<string, Entry>>>> = {
  Cues: {
    'cues create': entry('[NAME]', 'Create a cue', async () => (await cues()).create),
    'cues put': entry('<KEY> [NAME]', 'Create the cue with a key, or replace its definition', async () => (await cues()).put),
    'cues list': entry('', 'List cues, newest first', async () => (await cues()).list),
    'cues get': entry('[CUE]', 'Show a cue and its latest executions', async () => (await cues()).get),
    'cues history': entry('<CUE>', "Show what became of a cue's slots, by day in its time zone", async () => (await cues()).history),
    'cues update': entry('<CUE>', 'Update a cue', async () => (await cues()).update),
    'cues pause': entry('<CUE>', 'Pause a cue; existing executions continue', async () => (await cues()).pause),
    'cues resume': entry('<CUE>', 'Resume a paused cue', async () => (await cues()).resume),
    'cues fire': entry('<CUE>', 'Fire a cue now, regardless of its schedule', async () => (await cues()).fire),
    'cues delete': entry('[CUE]', 'Delete a cue with its history', async () => (await cues()).remove),
    preview: entry(
      '[SCHEDULE...]',
      'Show when a schedule would run, without creating a cue',
      async () => (await import('./preview.ts')).preview
    ),
    'calendars put': entry('<NAME>', 'Create or replace a calendar of dates that cues leave out', async () => (await calendars()).put),
    'calendars list': entry('', 'List calendars by name', async () => (await calendars()).list),
    'calendars get': entry('<NAME>', 'Show a calendar', async () => (await calendars()).get),
    'calendars delete': entry('<NAME>', 'Delete a calendar that no cue uses', async () => (await calendars()).remove)
  },
  Runs: {
    'executions list': entry('', 'List executions, newest first', async () => (await executions()).list),
    'executions tail': entry('', 'Print executions as they appear and change', async () => (await import('./watch.ts')).tail),
    'executions get': entry('<ID>', 'Show an execution and its attempts', async () => (await executions()).get),
    'executions replay': entry('<ID>', 'Replay an ended execution as a new one', async () => (await executions()).replay),
    'executions cancel': entry('<ID>', 'Cancel a waiting execution', async () => (await executions()).cancel),
    'executions dismiss': entry('<ID>', 'Remove an execution from the dead letters', async () => (await executions()).dismiss),
    'executions verify': entry('<ID>', 'Verify or reject a reported success', async () => (await executions()).verify),
    errors: entry(
      '',
      'List failures of the last 7 days that nobody has replayed or dismissed, grouped by error',
      async () => (await import('./errors.ts')).errors
    ),
    destinations: entry(
      '',
      'List the hosts that webhooks went to in the last 24 hours',
      async () => (await import('./errors.ts')).destinations
    )
  },
  Bulk: {
    replay: entry('[ID...]', 'Replay many executions', async () => (await operations()).replay),
    cancel: entry('[ID...]', 'Cancel many executions that have not ended', async () => (await operations()).cancel),
    dismiss: entry('[ID...]', 'Remove many executions from the dead letters', async () => (await operations()).dismiss),
    backfill: entry('<CUE>', 'Run the slots of a cue that did not run', async () => (await operations()).backfill),
    'operations list': entry('', 'List operations, newest first', async () => (await operations()).list),
    'operations get': entry('<ID>', 'Show an operation and its errors', async () => (await operations()).get),
    'operations abort': entry('<ID>', 'Abort a running operation; what it has done stays done', async () => (await operations()).abort)
  },
  'Schedules as files': {
    apply: entry('', 'Make the cues of a set as declared in files, all or none', async () => (await import('./apply.ts')).apply),
    export: entry('', 'Write cues that have keys as YAML for pgcue apply', async () => (await import('./export.ts')).exportCues)
  },
  Workers: {
    worker: entry(
      '',
      'Claim executions, run the handler of each task, report outcomes',
      async () => (await import('./worker/command.ts')).worker
    ),
    listen: entry('', 'Claim executions and forward them, signed, to a local URL', async () => (await import('./listen.ts')).listen),
    'workers list': entry('', 'List registered workers', async () => (await import('./workers.ts')).list),
    'workers delete': entry('<ID>', 'Remove a worker and release its claims', async () => (await import('./workers.ts')).remove)
  },
  Alerts: {
    overview: entry('', 'Show what needs attention, and how the last 24 hours went', async () => (await import('./overview.ts')).overview),
    'alerts list': entry('', 'List alerts, newest first', async () => (await import('./alerts.ts')).list),
    'alerts ack': entry(
      '<ID>',
      'Acknowledge an alert, so that another failure raises a new one',
      async () => (await import('./alerts.ts')).acknowledge
    )
  },
  Account: {
    register: entry('<EMAIL>', 'Create an account and store its key', async () => (await import('./login.ts')).register),
    login: entry('[DATA_DIR]', 'Get a key for this machine by email link, and store it', async () => (await import('./login.ts')).login),
    logout: entry('', 'Remove the stored key of this service (does not revoke it)', async () => (await account()).logout),
    whoami: entry('', 'Show the account and key in use', async () => (await account()).whoami),
    usage: entry('', "Show usage against the plan's limits", async () => (await account()).usage),
    'keys list': entry('', 'List keys, including revoked ones, newest first', async () => (await account()).keysList),
    'keys create': entry('<LABEL>', 'Create a key; it is shown only once', async () => (await account()).keysCreate),
    'keys revoke': entry('<ID>', 'Revoke a key, effective immediately', async () => (await account()).keysRevoke),
    'sessions list': entry('', 'List sessions of browsers and programs, newest first', async () => (await account()).sessionsList),
    'sessions revoke': entry('[ID]', 'End a session, or all of them, effective immediately', async () => (await account()).sessionsRevoke),
    operator: entry(
      '[QUESTION] [CUE_ID]',
      'Answer a question about the whole service, for its operator',
      async () => (await operator()).operator
    ),
    'operator hold': entry(
      '<REASON>',
      'Stop everything, or one account: nothing is taken, sent or claimed',
      async () => (await operator()).hold
    ),
    'operator release': entry('', 'End the hold of the service, or that of one account', async () => (await operator()).release)
  },
  Local: {
    tour: entry('', 'Create a cue, fire it, and show what arrives', async () => (await tour()).tour),
    dashboard: entry('', 'Print a link that opens the dashboard signed in', async () => (await tour()).dashboard),
    mcp: entry('', 'Serve the Model Context Protocol on standard input and output', async () => (await import('./mcp.ts')).mcp),
    completion: entry(
      '<SHELL>',
      'Print a script that completes commands and options in bash, zsh or fish',
      async () => (await import('./completion.ts')).completion
    )
  }
}

function entry(args: string, summary: string, load: Entry['load']): Entry {
  return { args, summary, load }
}

export const commands: ReadonlyMap<string, Entry> = new Map(Object.values(groups).flatMap(group => Object.entries(group)))
