/** `pgcue completion`: scripts that complete commands and options by asking this program. */
import { type Command, command } from './command.ts'
import { UsageError } from './exit-codes.ts'

type Commands = ReadonlyMap<string, { load: () => Promise<Command> }>

export const createCompletion = (commands: Commands) =>
  command({
    notes: `Install it
  bash  pgcue completion bash > ~/.local/share/bash-completion/completions/pgcue
  zsh   pgcue completion zsh > DIR/_pgcue, with DIR a directory in $fpath
  fish  pgcue completion fish > ~/.config/fish/completions/pgcue.fish`,
    run: async ({ args: [shell = '', ...before], io }) => {
      if (shell === 'words') return io.stdout.write(`${(await wordsAfter(commands, before)).join('\n')}\n`)
      if (!Object.hasOwn(scripts, shell)) throw new UsageError(`${shell} has no completion; choose bash, zsh or fish`)
      io.stdout.write(scripts[shell as keyof typeof scripts])
    }
  })

/** The words that may follow: commands, the second words of a group, or the options of a command. */
const wordsAfter = async (commands: Commands, before: string[]): Promise<string[]> => {
  const [first, second] = before.filter(word => !word.startsWith('-'))
  if (first === undefined) return [...new Set([...commands.keys(), 'help'].map(name => name.split(' ')[0]!))]
  const verbs = [...commands.keys()].flatMap(name => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []))
  const entry = commands.get(`${first} ${second}`) ?? commands.get(first)
  const { options = {} } = (await entry?.load()) ?? {}
  const names = entry ? [...Object.keys(options), 'json', 'base-url', 'help'].map(name => `--${name}`) : []
  return [...(second === undefined ? verbs : []), ...names]
}

const scripts = {
  bash: `# bash completion for pgcue
_pgcue() {
  local words="$(pgcue completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _pgcue pgcue
`,
  zsh: `#compdef pgcue
_pgcue() {
  compadd -- \${(f)"$(pgcue completion words -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"} || _files
}
if [ "$funcstack[1]" = _pgcue ]; then _pgcue "$@"; else compdef _pgcue pgcue; fi
`,
  fish: `# fish completion for pgcue
complete -c pgcue -f -a '(pgcue completion words -- (commandline -opc)[2..] 2>/dev/null)'
`
}
