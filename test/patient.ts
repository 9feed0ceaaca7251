/**
 * Some functions wait for locks so briefly that a deadlock is not noticed, and a busy machine refuses them. In this database they wait until
 * one is.
 */
export const letFunctionsWait = async (rows: (text: string) => Promise<{ name: string }[]>) => {
  const brief = await rows(`select oid::regprocedure::text as name from pg_proc
    where pronamespace = 'cue'::regnamespace and proconfig::text like '%lock_timeout%'`)
  if (brief.length === 0) throw new Error('no function has a lock_timeout of its own any more: this is not needed')
  for (const { name } of brief) await rows(`alter function ${name} set lock_timeout = '10s'`)
}
