/** Setup for tests of operations: executions and cues of an account, and running an operation batch by batch. */
import { createOperationBatches } from '../../src/operations/work.ts'
import { service, webhook } from './executions-stage.ts'
import { refused } from './stage.ts'

export const operationsStage = async () => {
  const s = await service()
  const { fn, clock, call, get, post, cue, ran } = s
  const batch = createOperationBatches(fn, () => +clock.now())
  /** Runs an operation to its end, and returns it. */
  const finish = async (id: string) => {
    for (let n = 0; ; n++) {
      const { status, wait_ms } = (await batch(id))!
      if (status !== 'running') return get(`/v1/operations/${id}`)
      if (n > 1000) throw new Error('the operation does not end')
      if (wait_ms > 0) clock.advance(`${wait_ms} milliseconds`)
    }
  }
  const start = (body: object, headers?: Record<string, string>) => call('POST', '/v1/operations', body, headers)
  /** Creates an operation and runs it to its end. */
  const operate = async (body: object, headers?: Record<string, string>) => {
    const { status, body: created } = await start(body, headers)
    if (status !== 202) throw new Error(JSON.stringify(created))
    return finish(created.id)
  }
  /** Executions of a cue that failed. */
  const failures = async (cue_id: string, count: number): Promise<string[]> => {
    const ids: string[] = []
    for (let n = 0; n < count; n++) ids.push(await ran(cue_id, refused))
    return ids
  }
  const failing = () => cue({ ...webhook, retry: { max_attempts: 1 } })
  const replaysOf = async (cue_id: string) => (await get(`/v1/executions?cue_id=${cue_id}&triggered_by=replay&limit=100`)).executions
  return { ...s, batch, finish, start, operate, failures, failing, replaysOf, post }
}
