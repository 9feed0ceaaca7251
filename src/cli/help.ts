/** Help, made from the commands themselves. */
import { type Command, globalOptions, type Option } from './command.ts'
import { exitCodeHelp } from './exit-codes.ts'

const environment = `Environment
  PGCUE_API_KEY    the key; without it the one that pgcue login stored
  PGCUE_BASE_URL   where the service is; http://localhost:8080 unless a login says otherwise
  NO_COLOR         no colours on a terminal; elsewhere there are none
  XDG_CONFIG_HOME  keys are stored in pgcue/credentials.json there, or in ~/.config; only you can read it`

/** All commands, or those of one noun. */
export const overview = (commands: [string, Command][]): string => {
  const usages = commands.map(([name, { args = '' }]) => `${name} ${args}`.trim())
  const width = Math.min(Math.max(...usages.map(usage => usage.length)), 46)
  const lines = commands.map(([, { summary }], i) => {
    const usage = usages[i]!
    return usage.length > width ? `  ${usage}\n  ${' '.repeat(width)}  ${summary}` : `  ${usage.padEnd(width)}  ${summary}`
  })
  return `Usage: pgcue COMMAND [options]

${lines.join('\n')}

Options of every command
${optionLines(globalOptions)}

${exitCodeHelp}

${environment}

pgcue help COMMAND tells more.`
}

export const helpOf = (name: string, { args = '', summary, notes, options = {} }: Command): string =>
  [
    `Usage: ${`pgcue ${name} ${args}`.trim()}\n\n${summary}.`,
    Object.keys(options).length ? `Options\n${optionLines(options)}` : '',
    notes,
    `Of every command: ${Object.keys(globalOptions)
      .map(option => `--${option}`)
      .join(', ')}; see pgcue help.`
  ]
    .filter(Boolean)
    .join('\n\n')

const optionLines = (options: Record<string, Option>): string => {
  const names = Object.entries(options).map(([name, { value }]) => `--${name}${value ? ` ${value}` : ''}`)
  const width = Math.max(...names.map(name => name.length))
  return Object.values(options)
    .map(({ help, multiple }, i) => `  ${names[i]!.padEnd(width)}  ${help}${multiple ? '; may be repeated' : ''}`)
    .join('\n')
}
