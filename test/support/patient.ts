/**
 * Sets the lock_timeout of this database's functions: of those with a short one of their own, or of all others that no function calls.
 * The short ones end before a deadlock is detected, and a busy machine exceeds them; the others end waits that a test wants to observe.
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
  if (functions.length === 0) throw new Error('no function has its own lock_timeout any more: remove this helper')
  for (const { name } of functions) await rows(`alter function ${name} set lock_timeout = '${timeout}'`)
}
