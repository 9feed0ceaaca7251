/** Cues that can't be fired or moved, each left out until a time, so that they hold up no others. */
export const createLeftOut = (now: () => number) => {
  // Cue → until when, on the clock of `now`.
  const until = new Map<string, number>()
  return {
    add: (cue_id: string, ms: number): void => void until.set(cue_id, now() + ms),
    has: (cue_id: string): boolean => until.has(cue_id),
    delete: (cue_id: string): boolean => until.delete(cue_id),
    clear: (): void => until.clear(),
    /** The cues, as far as their time isn't over: others are no longer left out. */
    ids: (): string[] => {
      for (const [id, end] of until) if (end <= now()) until.delete(id)
      return [...until.keys()]
    }
  }
}

export type LeftOut = ReturnType<typeof createLeftOut>
