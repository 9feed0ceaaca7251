/** The cues that a cue follows, in words. No imports: the command line and the dashboard load this too. */
type After = { cues: string[]; when: string; mode: string }

const ends: Record<string, string> = { verified: ' is verified', failure: ' fails', end: ' ends' }

/** `After extract and load`, `After any of extract and load is verified`. */
export const afterText = ({ cues, when, mode }: After): string => {
  const [last, ...before] = [...cues].reverse()
  const names = before.length > 0 ? `${before.reverse().join(', ')} and ${last}` : last
  return `After ${mode === 'any' && cues.length > 1 ? 'any of ' : ''}${names}${ends[when] ?? ''}`
}
