/** Publishes the events of the database at this URL like an engine, in a process that can be killed. */
import { createFunctions } from '../../src/database/functions.ts'
import { createListener } from '../../src/database/listener.ts'
import { createPool } from '../../src/database/pool.ts'
import { createPublisher } from '../../src/engine/publisher.ts'

const url = process.argv[2]!
const { notice, publish } = createPublisher({ fn: createFunctions(createPool({ databaseUrl: url, pgPoolMax: 1 })) })
let last = Promise.resolve()
const run = () => {
  notice()
  last = last.then(publish)
}
await createListener({ databaseUrl: url, listenUrl: url }, { channels: ['cue_event'], onNotification: run, onConnected: run })
setInterval(run, 200)
process.stdout.write('ready')
