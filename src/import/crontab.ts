/** Crontabs, of users or of the system: each line becomes a worker cue, and a handler of `pgcue worker`. */
import { cronSchedule, type Entry, type Importer, judged, type Options, refuse, translate } from './entries.ts'
import type { Part } from './parts.ts'

type Line = Part & { value: object; text: string; env: Record<string, string> }

export const crontab: Importer = (text, options) => {
  const lines = linesOf(text)
  const isSystem = options.system || systemFile.test(options.file) || lines.some(({ text }) => usualUser.test(text))
  return translate(lines, (_, line) => entryOf(line, isSystem, options))
}

/** In the crontab of a user, these would be commands. */
const usualUser = /^-?(?:@\w+|(?:\S+\s+){4}\S+)\s+(?:root|nobody|daemon|www-data|postgres)\s+\S/
const systemFile = /^\/etc\/(?:crontab$|cron\.d\/)/
const assignment = /^(?:"([^"]+)"|'([^']+)'|([A-Za-z_]\w*))\s*=\s*(.*)$/

/** The lines that are neither comments nor variables, with the variables above them. */
const linesOf = (source: string): Line[] => {
  const env: Record<string, string> = {}
  return source
    .replace(/^\ufeff/, '')
    .split('\n')
    .flatMap((whole, i) => {
      const text = whole.trim()
      if (text === '' || text.startsWith('#')) return []
      const [, inDouble, inSingle, plain, value] = assignment.exec(text) ?? []
      const name = inDouble ?? inSingle ?? plain
      if (name === undefined) return [{ text, line: i + 1, env: { ...env }, value: {} }]
      env[name] = value!.replace(/^(["'])(.*)\1$/, '$2')
      return []
    })
}

const entryOf = ({ text, env }: Line, isSystem: boolean, options: Options): Omit<Entry, 'line'> => {
  const [, when, rest] = /^-?(@\w+|(?:\S+\s+){4}\S+)\s+(.+)$/.exec(text) ?? refuse('is neither a variable nor a schedule with a command')
  if (/^@reboot$/i.test(when!)) refuse('@reboot is not supported: a cue runs at a time')
  const [, user, command] = isSystem
    ? (/^([a-z_]\S*)\s+(.+)$/i.exec(rest!) ?? refuse('has no user before the command'))
    : [rest, undefined, rest]
  const schedule = cronSchedule(when!, env.CRON_TZ || options.timezone, options)
  const { RANDOM_DELAY: delay = '0' } = env
  return {
    name: taskOf(command!),
    comment: user === undefined ? command! : `As ${user}: ${command}`,
    cue: { schedule: Number(delay) > 0 ? judged({ ...schedule, window: `${delay}m` }, options.now) : schedule, worker: true },
    handler: handlerOf(command!, env)
  }
}

/** Programs that run another one. */
const wrapper = /^(?:\S*\/)?(?:\[|!|if|test|exec|command|time|sudo|nice|ionice|env|sh|bash|zsh|perl|php|python[\d.]*|node|ruby)$/

/** The name of the program that a command runs. */
const taskOf = (command: string): string => {
  const words = command.replace(/^cd\s+\S+\s*(?:&&|;)\s*/, '').split(/\s+/)
  const program = words.find(word => !word.includes('=') && !word.startsWith('-') && !wrapper.test(word)) ?? words[0]!
  return program.replace(/^.*\/(?=.)/, '').replace(/(?<=.)\.\w+$/, '')
}

/** Variables for cron itself. */
const ofCron = ['SHELL', 'MAILTO', 'MAILFROM', 'CONTENT_TYPE', 'CONTENT_TRANSFER_ENCODING', 'CRON_TZ', 'RANDOM_DELAY']

/** Unescaped, % ends the command and begins the lines of its input. */
const handlerOf = (command: string, env: Record<string, string>): object => {
  const [program, ...input] = command.split(/(?<!\\)%/).map(part => part.replaceAll('\\%', '%'))
  const script = input.length > 0 ? `{\n${program}\n} <<'END_OF_INPUT'\n${input.join('\n')}\nEND_OF_INPUT` : program!
  const variables = Object.fromEntries(Object.entries(env).filter(([name]) => !ofCron.includes(name)))
  const isDefault = env.SHELL === undefined || env.SHELL === '/bin/sh'
  return {
    command: isDefault ? script : [env.SHELL, '-c', script],
    ...(env.HOME !== undefined && { cwd: env.HOME }),
    ...(Object.keys(variables).length > 0 && { env: variables })
  }
}
