/** How an engine hands its work over when it stops. */
import type { BegunAttempt, Functions } from '../database/functions.ts'
import type { Flights } from '../deliveries/flights.ts'
import type { Pump } from '../deliveries/pump.ts'
import type { Results } from '../deliveries/results.ts'

type Options = {
  engineId: string
  pump: Pick<Pump, 'stop' | 'ended'>
  flights: Pick<Flights, 'end' | 'removeEnded'>
  results: Pick<Results, 'stop'>
  fn: Pick<Functions, 'stopEngine' | 'releaseFlight' | 'loseAttempts'>
  onError: (error: unknown, task: string) => void
}

/** How long open requests may go on, and then how long results may take to be written. Together less than a host waits after SIGTERM. */
const requestsMs = 20_000
const resultsMs = 5000

/**
 * Takes no further work and returns unsent attempts to the queue, waits for open requests, and returns those that are still open, as lost.
 * Resolves when all results are written. Returns the number of attempts returned.
 */
export const handOver = async ({ engineId, pump, flights, results, fn, onError }: Options): Promise<number> => {
  let returned = 0
  const giveBack = async (attempts: BegunAttempt[], write: (flight_id: number, execution_ids: string[]) => Promise<unknown>) => {
    for (const [flight, ofFlight] of Map.groupBy(attempts, attempt => attempt.flight_id)) {
      const ids = ofFlight.map(attempt => attempt.execution_id)
      try {
        await write(flight, ids)
        flights.end(ofFlight)
        returned += ids.length
      } catch (error) {
        onError(error, 'return attempts')
      }
    }
  }

  const patience = AbortSignal.timeout(requestsMs)
  const unsent = await pump.stop(patience)
  await fn.stopEngine({ engine_id: engineId }).catch(error => onError(error, 'report stop'))
  await giveBack(unsent, (flight_id, execution_ids) => fn.releaseFlight({ flight_id, execution_ids }))
  const open = await pump.ended(patience)
  await giveBack(open, (flight_id, execution_ids) =>
    fn.loseAttempts({ flight_id, execution_ids, error: 'the sending replica stopped before the response arrived' })
  )
  await results.stop(AbortSignal.timeout(resultsMs))
  await flights.removeEnded().catch(error => onError(error, 'end flights'))
  return returned
}
