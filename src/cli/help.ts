/** Help texts, generated from the commands. */
import { type Command, globalOptions, type Option } from './command.ts'
import { exitCodeHelp } from './exit-codes.ts'

const environment = `Environment
  PGCUE_API_KEY    API key (default: the key stored by pgcue login)
  PGCUE_BASE_URL   address of the service (default: that of the last login, else http://localhost:8080)
  NO_COLOR         disable colours on a terminal
  XDG_CONFIG_HOME  directory of pgcue/credentials.json, which stores keys and only you can read (default: ~/.config)`

/** Help for all commands, or for those of one noun. */
export const overview = (commands: [string, Command][]): string => {
  const usages = commands.map(([name, { args = '' }]) => `${name} ${args}`.trim())
  const width = Math.min(Math.max(...usages.map(usage => usage.length)), 46)
  const lines = commands.map(([, { summary }], i) => {
    const usage = usages[i]!
    return usage.length > width ? `  ${usage}\n  ${' '.repeat(width)}  ${summary}` : `  ${usage.padEnd(width)}  ${summary}`
  })
  return `Usage: pgcue COMMAND [options]

${lines.join('\n')}

Global options
${optionLines(globalOptions)}

${exitCodeHelp}

${environment}

Run pgcue help COMMAND for details.`
}

export const helpOf = (name: string, { args = '', summary, notes, options = {} }: Command): string =>
  [
    `Usage: ${`pgcue ${name} ${args}`.trim()}\n\n${summary}.`,
    Object.keys(options).length ? `Options\n${optionLines(options)}` : '',
    notes,
    `Global options: ${Object.keys(globalOptions)
      .map(option => `--${option}`)
      .join(', ')}; see pgcue help.`
  ]
    .filter(Boolean)
    .join('\n\n')

const optionLines = (options: Record<string, Option>): string => {
  const names = Object.entries(options).map(
    ([name, { short, value }]) => `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`
  )
  const width = Math.max(...names.map(name => name.length))
  return Object.values(options)
    .map(({ help, multiple }, i) => `  ${names[i]!.padEnd(width)}  ${help}${multiple ? '; repeatable' : ''}`)
    .join('\n')
}
