/** A third of a thread's memory is garbage that loading has left, and an idle replica would keep it. `npm start` exposes what collects it. */
export const collectGarbage = (): void => void globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
