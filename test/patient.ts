/**
 * Sets how long functions of this database wait for a lock: those with a short lock_timeout of their own, or all others that no function calls.
 * The short ones are too short to notice a deadlock, and a busy machine exceeds them; the others end a wait that a test wants to see.
 */
export const setLockTimeout = async (
  rows: (text: string) => Promise<{ name: string }[]>,
  which: 'short' | 'others',
  timeout: string
): Promise<void> => {
  const functions = await rows(`select p.oid::regprocedure::text as name from pg_proc p
    where p.pronamespace = 'cue'::regnamespace and p.provolatile = 'v' and p.prorettype <> 'trigger'::regtype
      and ${
        which === 'short'
          ? "p.proconfig::text like '%lock_timeout%'"
          : `coalesce(p.proconfig::text, '') not like '%lock_timeout%'
             and not exists (select from pg_proc o where o.oid <> p.oid and o.prosrc like '%cue.' || p.proname || '(%')`
      }`)
  if (functions.length === 0) throw new Error('no function has a lock_timeout of its own any more: this is not needed')
  for (const { name } of functions) await rows(`alter function ${name} set lock_timeout = '${timeout}'`)
}
