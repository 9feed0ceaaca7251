/** Publishes the events of the database at this URL like an engine, in a process that can be killed. */
import { createFunctions } from '../../src/database/functions.ts'
import { createListener } from '../../src/database/listener.ts'
import { createPool } from '../../src/database/pool.ts'
import { publishEvents } from '../../src/engine/publisher.ts'

const url = process.argv[2]!
const fn = createFunctions(createPool({ databaseUrl: url, pgPoolMax: 1 }))
let last = Promise.resolve()
const run = () => {
  last = last.then(() => publishEvents(fn))
}
await createListener({ databaseUrl: url, listenUrl: url }, { channels: ['cue_event'], onNotification: run, onConnected: run })
setInterval(run, 200)
process.stdout.write('ready')
