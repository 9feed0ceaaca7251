/** Cells that have moved to another server while this process runs. Connections to the former one are led to the other. */

/** SQLSTATE of a database that is not a cell: any more, with its new URL as the detail, or yet, as a copy that is not complete. */
const notHere = '57M01'

/** To be run by each new session. A schema marks the incomplete copy, since it has to be there before anything else is. */
export const requireHere = `do $$
declare v_to text;
begin
  if to_regnamespace('pgcue_copy') is not null then
    raise exception 'this database is an incomplete copy of a cell' using errcode = '${notHere}';
  end if;
  if to_regclass('cue.moved') is not null then
    select to_url into v_to from cue.moved;
    if found then raise exception 'the cell has moved to another server' using errcode = '${notHere}', detail = v_to; end if;
  end if;
end $$`

const moves = new Map<string, string>()

/** Where the database of a URL is now. */
export const currentUrl = (url: string): string => {
  let latest = url
  while (moves.has(latest)) latest = moves.get(latest)!
  return latest
}

/** Remembers where the cell is, if that is what a session was refused for. @returns whether it is */
export const noteMove = (url: string, error: unknown): boolean => {
  const { code, detail } = (error ?? {}) as { code?: string; detail?: string }
  if (code !== notHere || !detail) return false
  moves.delete(detail) // it may have moved back
  if (detail !== url) moves.set(url, detail)
  return true
}
