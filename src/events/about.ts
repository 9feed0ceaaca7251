/** What an event is about, in a few words: a message, an error, or a name. */
export const aboutEvent = ({ data }: { data: unknown }): string | null => {
  const { message, error_message, name, cue_name, label, task, limit, secret } = data as Record<string, string | null | undefined>
  return message ?? error_message ?? name ?? cue_name ?? label ?? task ?? limit ?? secret ?? null
}
