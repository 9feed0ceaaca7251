/** Collects what loading has left: a third of a thread's memory, which an idle replica would keep. `npm start` exposes `gc`. */
export const collectGarbage = (): void => void globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
