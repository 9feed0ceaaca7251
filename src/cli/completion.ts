/** `pgcue completion`: shell completion scripts, generated from the commands. */
import { type Command, command } from './command.ts'
import { commands } from './commands.ts'
import { UsageError } from './exit-codes.ts'

export const completion = command({
  notes: `Install it
  bash  pgcue completion bash > ~/.local/share/bash-completion/completions/pgcue
  zsh   pgcue completion zsh > DIR/_pgcue, with DIR a directory in $fpath
  fish  pgcue completion fish > ~/.config/fish/completions/pgcue.fish`,
  run: async ({ args: [shell = ''], io }) => {
    const script = Object.hasOwn(scripts, shell) && scripts[shell as keyof typeof scripts]
    if (!script) throw new UsageError(`${shell} has no completion; choose bash, zsh or fish`)
    io.stdout.write(script(await wordsAfter()))
  }
})

/** Maps the words before the cursor to the words that may follow. */
const wordsAfter = async (): Promise<Map<string, string[]>> => {
  const places = new Map([['', [...new Set([...commands.keys(), 'help'].map(name => name.split(' ')[0]!))]]])
  for (const [name, { load }] of commands) {
    const [group, verb] = name.split(' ') as [string, string?]
    if (verb) places.set(group, [...(places.get(group) ?? []), verb])
    places.set(name, [...(places.get(name) ?? []), ...optionsOf(await load())])
  }
  return places
}

const optionsOf = ({ options }: Command) => [...Object.keys(options ?? {}), 'json', 'base-url', 'help'].map(name => `--${name}`)

/** A `case` on the first two words that are not options, for bash and zsh. */
const cases = (places: Map<string, string[]>) =>
  [...places]
    .sort(([a], [b]) => b.split(' ').length - a.split(' ').length)
    .map(([words, next]) => {
      const pattern = words === '' ? "''" : words.includes(' ') ? `'${words}'*` : `'${words}'|'${words} '*`
      return `    ${pattern}) candidates='${next.join(' ')}' ;;`
    })
    .join('\n')

const scripts = {
  bash: (places: Map<string, string[]>) => `# bash completion for pgcue
_pgcue() {
  local before= candidates= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) before="\${before:+$before }$word" ;; esac
  done
  case "$before" in
${cases(places)}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _pgcue pgcue
`,
  zsh: (places: Map<string, string[]>) => `#compdef pgcue
_pgcue() {
  local before= candidates= word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$word" in -*) ;; *) before="\${before:+$before }$word" ;; esac
  done
  case "$before" in
${cases(places)}
  esac
  compadd -- \${=candidates} || _files
}
if [ "$funcstack[1]" = _pgcue ]; then _pgcue "$@"; else compdef _pgcue pgcue; fi
`,
  fish: (places: Map<string, string[]>) =>
    `# fish completion for pgcue
complete -c pgcue -f
${[...places]
  .map(([words, next]) => {
    const [first, second] = words.split(' ')
    const here = !first
      ? '__fish_use_subcommand'
      : `__fish_seen_subcommand_from ${first}${second ? `; and __fish_seen_subcommand_from ${second}` : ''}`
    const verbs = next.filter(word => !word.startsWith('--'))
    const among = first && !second && verbs.length > 0 ? `; and not __fish_seen_subcommand_from ${verbs.join(' ')}` : ''
    const options = next.filter(word => word.startsWith('--')).map(word => ` -l ${word.slice(2)}`)
    return [...(verbs.length > 0 ? [` -a '${verbs.join(' ')}'`] : []), ...options]
      .map(what => `complete -c pgcue -n '${here}${among}'${what}`)
      .join('\n')
  })
  .join('\n')}
`
}
