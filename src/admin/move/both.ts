/** The two databases of a move. */
import { type Client, read } from '../database.ts'

export type Move = {
  cell: number
  source: string
  target: string
  /** The source as the target connects to it. */
  sourceForTarget: string
  targetForReplicas: string
  isAborting: boolean
  maxPauseMs?: number
  signal: AbortSignal
  say: (line: string) => void
}

/** Both databases of a move that is under way. */
export type Both = Move & { from: Client; to: Client }

export const releaseOf = async (client: Client): Promise<number | undefined> =>
  (await read<{ number: number }>(client, "select split_part(checksum, ' ', 1)::int as number from cue.migrations where id = 0"))[0]?.number
