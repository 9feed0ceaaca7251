/** What time it is by the database's clock, which decides what is due. */
export type Clock = {
  now: () => Date
  /** Takes over what the database answered to a question asked at `askedAt` (`performance.now()`). */
  learn: (databaseNow: Date, askedAt: number) => void
}

/** Counts on from the last answer by this process's steady clock, so a step of the host's clock changes nothing. Until then, the host's. */
export const createClock = (fixed?: () => Date): Clock => {
  let offset = Date.now() - performance.now()
  return {
    now: fixed ?? (() => new Date(offset + performance.now())),
    learn: (databaseNow, askedAt) => {
      offset = databaseNow.getTime() - (askedAt + performance.now()) / 2
    }
  }
}
