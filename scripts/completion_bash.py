"""Completions for bash: see completion.py."""

# The completion of an option's value, by the word in its help; other values have none.
VALUES = {"KEY=VALUE": "keys", "FILE": "-f", "DIR": "-d", "STEP|DIR": "-d", "WHEN": "-W 'auto always never'",
          "LEVEL": "-W 'debug info warning error'"}

FRAME = """\
# Completions of {names}. Made by scripts/completion.py from what they say with --help.
_dtf_files() {{
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
  compopt -o filenames 2>/dev/null
  return 0
}}

# The keys of a job's file; a value follows at once.
_dtf_keys() {{
  local keys='{keys}'
  mapfile -t COMPREPLY < <(compgen -W "$keys" -S = -- "$1")
  compopt -o nospace 2>/dev/null
  return 0
}}

{functions}"""

FUNCTION = """\
_{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local options='{options}'
  COMPREPLY=()
  case $before in
{values}  esac
{verbs}  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    *) [ ${{#COMPREPLY[@]}} -gt 0 ] || _dtf_files -f "$word" ;;
  esac
}}
complete -F _{function} {name}
"""

# Without a verb a file may follow; the verb is then `up`.
VERBS = """\
  local verb= each
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
    case $each in {alternatives}) verb=$each; break ;; esac
  done
  case $verb in
{options}  esac
  if [ "$verb" = logs ] && [[ $word != -* ]]; then
    local file=
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
      case $each in logs|-*) ;; *) file=$each; break ;; esac
    done
    if [ -n "$file" ]; then
      mapfile -t COMPREPLY < <(compgen -W "$("${{COMP_WORDS[0]}}" logs "$file" --list 2>/dev/null)" -- "$word")
      return
    fi
  fi
  case $verb:$before in
    keys:keys) mapfile -t COMPREPLY < <(compgen -W 'init issue renew show' -- "$word"); return ;;
    help:help) mapfile -t COMPREPLY < <(compgen -W '{words}' -- "$word"); return ;;
    :*) [ -z "$word" ] || mapfile -t COMPREPLY < <(compgen -W '{words}' -- "$word") ;;
  esac
"""


def value_cases(options):
    cases = {}
    for option in options:
        if option.metavar:
            cases.setdefault(VALUES.get(option.metavar), []).append("--" + option.name)
    out = ""
    for compgen, names in cases.items():
        reply = ""
        if compgen == "keys":
            reply = '_dtf_keys "$word"; '
        elif compgen in ("-f", "-d"):
            reply = f'_dtf_files {compgen} "$word"; '
        elif compgen:
            reply = f'mapfile -t COMPREPLY < <(compgen {compgen} -- "$word"); '
        out += f"    {'|'.join(names)}) {reply}return ;;\n"
    return out


def words_of(options):
    return " ".join(word for option in options for word in ["--" + option.name] + ([option.letter] if option.letter else []))


def verb_lines(text, options):
    """The differences of each verb; `up` stands for none."""
    cases = ""
    for verb in text.verbs:
        own = words_of([option for option in options if verb in option.verbs])
        if own:
            cases += f"    {verb + ('|' + chr(39) * 2 if verb == 'up' else '')}) options+=' {own}' ;;\n"
    return VERBS.format(alternatives="|".join(text.verbs), words=" ".join(text.verbs), options=cases)


def function_of(text):
    options = text.options()
    return FUNCTION.format(function=text.program.replace("-", "_"), name=text.program, values=value_cases(options),
                           options=words_of([option for option in options if not option.verbs]),
                           verbs=verb_lines(text, options) if text.verbs else "")


def script_of(texts, keys):
    return FRAME.format(keys=" ".join(keys), names=", ".join(text.program for text in texts), functions="\n".join(map(function_of, texts)))
