/** Equal reads that are requested in one turn of the event loop share one query, because a wake-up may cause hundreds of them. */
export const shareReads = <Q extends object, A>(read: (question: Q) => Promise<A>) => {
  const gathering = new Map<string, Promise<A>>()
  return (question: Q): Promise<A> => {
    const name = JSON.stringify(question)
    let answer = gathering.get(name)
    if (!answer) {
      // The query starts after the turn: what any of its callers has seen before is visible to it.
      answer = new Promise(setImmediate).then(() => {
        gathering.delete(name)
        return read(question)
      })
      gathering.set(name, answer)
    }
    return answer
  }
}
