/** All commands, in the groups and the order of help. What a command needs to run is loaded when it runs. */
import type { Command } from './command.ts'

/** `args`: such as `<CUE> [ID...]`. */
type Entry = { args: string; summary: string; load: () => Promise<Command> }

const account = () => import('./account.ts')
const approvals = () => import('./approvals.ts')
const alerts = () => import('./alerts.ts')
const channels = () => import('./channels.ts')
const apply = () => import('./apply.ts')
const chain = () => import('./chain.ts')
const calendars = () => import('./calendars.ts')
const gates = () => import('./gates.ts')
// It gets the commands, which it would import in a circle.
const completion = async () => ({ completion: (await import('./completion.ts')).createCompletion(commands) })
const cues = () => import('./cues.ts')
const endpoints = () => import('./event-endpoints.ts')
const events = () => import('./events.ts')
const executions = () => import('./executions.ts')
const exports = () => import('./export.ts')
const imports = () => import('./import.ts')
const listen = () => import('./listen.ts')
const login = () => import('./login.ts')
const mcp = () => import('./mcp.ts')
const operations = () => import('./operations.ts')
const operator = () => import('./operator.ts')
const tour = () => import('./tour.ts')
const worker = () => import('./worker/command.ts')

export const groups: Readonly<Record<string, Readonly<Record<string, Entry>>>> = {
  Cues: {
    'cues create': entry('[NAME]', 'Create a cue', cues, 'create'),
    'cues put': entry('<KEY> [NAME]', 'Create the cue with a key, or replace its definition', cues, 'put'),
    'cues list': entry('', 'List cues, newest first', cues, 'list'),
    'cues get': entry('[CUE]', 'Show a cue and its latest executions', cues, 'get'),
    'cues history': entry('<CUE>', "Show what became of a cue's slots, by day in its time zone", cues, 'history'),
    'cues update': entry('<CUE>', 'Update a cue', cues, 'update'),
    'cues chain': entry('[CUE]', 'Show the cues that a cue follows, and those that follow it, as a tree', chain, 'chain'),
    'cues pause': entry('<CUE>', 'Pause a cue; existing executions continue', cues, 'pause'),
    'cues resume': entry('<CUE>', 'Resume a paused cue', cues, 'resume'),
    'cues fire': entry('<CUE>', 'Fire a cue now, regardless of its schedule', cues, 'fire'),
    'cues test': entry('<CUE|URL>', 'Send one signed request to the address of a cue, or to a URL', cues, 'test'),
    'cues preview-payload': entry(
      '[NAME]',
      'Show the payload of a cue with the values of its template, without creating it',
      cues,
      'previewPayload'
    ),
    'cues delete': entry('[CUE]', 'Delete a cue with its history', cues, 'remove'),
    preview: entry('[SCHEDULE...]', 'Show when a schedule would run, without creating a cue', calendars, 'preview'),
    'calendars put': entry('<NAME>', 'Create or replace a calendar of dates that cues leave out', calendars, 'put'),
    'calendars list': entry('', 'List calendars by name', calendars, 'list'),
    'calendars get': entry('<NAME>', 'Show a calendar', calendars, 'get'),
    'calendars delete': entry('<NAME>', 'Delete a calendar that no cue uses', calendars, 'remove'),
    'gates put': entry('<KEY>', 'Create or replace a gate: a limit that cues share', gates, 'put'),
    'gates list': entry('', 'List gates by key', gates, 'list'),
    'gates get': entry('<KEY>', 'Show a gate', gates, 'get'),
    'gates pause': entry('<KEY>', 'Hold the executions of a gate', gates, 'pause'),
    'gates resume': entry('<KEY>', 'Resume a gate', gates, 'resume'),
    'gates delete': entry('<KEY>', 'Delete a gate that no cue uses', gates, 'remove')
  },
  Runs: {
    'executions list': entry('', 'List executions, newest first', executions, 'list'),
    'executions tail': entry('', 'Print executions as they appear and change', executions, 'tail'),
    'executions get': entry('<ID>', 'Show an execution and its attempts', executions, 'get'),
    'executions replay': entry('<ID>', 'Replay an ended execution as a new one', executions, 'replay'),
    'executions cancel': entry('<ID>', 'Cancel a waiting execution', executions, 'cancel'),
    'executions signal': entry('<ID>', 'Count a failed execution as good enough for the cues that follow', executions, 'signal'),
    'executions dismiss': entry('<ID>', 'Remove an execution from the dead letters', executions, 'dismiss'),
    'executions verify': entry('<ID>', 'Verify or reject a reported success', executions, 'verify'),
    approvals: entry('', 'List executions that wait for approval, newest first', approvals, 'list'),
    approve: entry('<ID>', 'Approve an execution that waits for approval', approvals, 'approve'),
    reject: entry('<ID>', 'Reject an execution that waits for approval', approvals, 'reject'),
    errors: entry('', 'List failures that nobody has replayed or dismissed, grouped by error', executions, 'errors'),
    destinations: entry('', 'List the hosts that webhooks went to in the last 24 hours', executions, 'destinations')
  },
  Bulk: {
    replay: entry('[ID...]', 'Replay many executions', operations, 'replay'),
    cancel: entry('[ID...]', 'Cancel many executions that have not ended', operations, 'cancel'),
    dismiss: entry('[ID...]', 'Remove many executions from the dead letters', operations, 'dismiss'),
    backfill: entry('<CUE>', 'Run the slots of a cue that did not run', operations, 'backfill'),
    'operations list': entry('', 'List operations, newest first', operations, 'list'),
    'operations get': entry('<ID>', 'Show an operation and its errors', operations, 'get'),
    'operations abort': entry('<ID>', 'Abort a running operation; what it has done stays done', operations, 'abort')
  },
  'Schedules as files': {
    apply: entry('', 'Make the cues of a set as declared in files, all or none', apply, 'apply'),
    export: entry('', 'Write cues that have keys as YAML for pgcue apply', exports, 'exportCues'),
    import: entry('<KIND> [FILE...]', 'Write schedules of another system as YAML for pgcue apply', imports, 'importCues')
  },
  Workers: {
    worker: entry('', 'Claim executions, run the handler of each task, report outcomes', worker, 'worker'),
    listen: entry('', 'Claim executions and forward them, signed, to a local URL', listen, 'listen'),
    'workers list': entry('', 'List registered workers', alerts, 'listWorkers'),
    'workers delete': entry('<ID>', 'Remove a worker and release its claims', alerts, 'removeWorker')
  },
  Alerts: {
    overview: entry('', 'Show what needs attention, and how the last 24 hours went', alerts, 'overview'),
    events: entry('', 'Print what happened in the account, and with --follow what happens', events, 'events'),
    'alerts list': entry('', 'List alerts, newest first', alerts, 'list'),
    'alerts ack': entry('<ID>', 'Acknowledge an alert, so that another failure raises a new one', alerts, 'acknowledge'),
    'alerts snooze': entry('<ID>', 'Send nothing about an alert to channels until a time', alerts, 'snooze'),
    costs: entry('', 'Sum what executions reported as costs', () => import('./costs.ts'), 'costs'),
    'channels list': entry('', 'List channels by name', channels, 'list'),
    'channels get': entry('<NAME>', 'Show a channel', channels, 'get'),
    'channels set': entry('<NAME>', 'Create or replace a channel', channels, 'set'),
    'channels test': entry('<NAME>', 'Send a test message to a channel', channels, 'test'),
    'channels delete': entry('<NAME>', 'Delete a channel', channels, 'remove'),
    'event-endpoints list': entry('', 'List the URLs that get events, newest first', endpoints, 'list'),
    'event-endpoints get': entry('<ID>', 'Show an event endpoint', endpoints, 'get'),
    'event-endpoints create': entry('<URL>', 'Send events to a URL; its secret is shown only once', endpoints, 'create'),
    'event-endpoints delete': entry('<ID>', 'Delete an event endpoint', endpoints, 'remove'),
    'event-endpoints enable': entry('<ID>', 'Send events to an endpoint again, after it failed', endpoints, 'enable'),
    'event-endpoints test': entry('<ID>', 'Send a test event to an endpoint', endpoints, 'test')
  },
  Account: {
    register: entry('<EMAIL>', 'Create an account and store its key', login, 'register'),
    login: entry('[DATA_DIR]', 'Get a key for this machine by email link, and store it', login, 'login'),
    logout: entry('', 'Remove the stored key of this service (does not revoke it)', account, 'logout'),
    whoami: entry('', 'Show the account and key in use', account, 'whoami'),
    usage: entry('', "Show usage against the plan's limits", account, 'usage'),
    'keys list': entry('', 'List keys, including revoked ones, newest first', account, 'keysList'),
    'keys create': entry('<LABEL>', 'Create a key; it is shown only once', account, 'keysCreate'),
    'keys revoke': entry('<ID>', 'Revoke a key, effective immediately', account, 'keysRevoke'),
    'sessions list': entry('', 'List sessions of browsers and programs, newest first', account, 'sessionsList'),
    'sessions revoke': entry('[ID]', 'End a session, or all of them, effective immediately', account, 'sessionsRevoke'),
    operator: entry('[QUESTION] [CUE_ID]', 'Answer a question about the whole service, for its operator', operator, 'operator'),
    'operator hold': entry('<REASON>', 'Stop everything, or one account: nothing is taken, sent or claimed', operator, 'hold'),
    'operator release': entry('', 'End the hold of the service, or that of one account', operator, 'release')
  },
  Local: {
    tour: entry('', 'Create a cue, fire it, and show what arrives', tour, 'tour'),
    dashboard: entry('', 'Print a link that opens the dashboard signed in', tour, 'dashboard'),
    mcp: entry('', 'Serve the Model Context Protocol on standard input and output', mcp, 'mcp'),
    completion: entry(
      '<SHELL> [WORD...]',
      'Print a script that completes commands and options in bash, zsh or fish',
      completion,
      'completion'
    )
  }
}

/** The command that a module exports under a name. */
function entry<M>(args: string, summary: string, load: () => Promise<M>, name: keyof M): Entry {
  return { args, summary, load: async () => (await load())[name] as Command }
}

export const commands: ReadonlyMap<string, Entry> = new Map(Object.values(groups).flatMap(group => Object.entries(group)))
