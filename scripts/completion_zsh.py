"""Completions for zsh: see completion.py."""

# The completion of an option's value in the form of _arguments, by the word in its help; other
# values have none, and the word is shown as a hint.
ACTIONS = {"KEY=VALUE": "_dtf_keys", "FILE": "_files", "DIR": "_path_files -/", "STEP|DIR": "_path_files -/", "WHEN": "(auto always never)",
           "LEVEL": "(debug info warning error)"}

FRAME = """\
#compdef {names}
# Completions of {names}. Made by scripts/completion.py from what they say with --help.

# The keys of a job's file; a value follows at once.
_dtf_keys() {{
  local -a keys=({keys})
  compadd -S '' -- ${{^keys}}=
}}

{functions}
case $service in
{cases}esac
"""

FUNCTION = """\
_{function}() {{
  local -a options=(
{options}  )
{verbs}  _arguments -S $options '*:file:{words}'
}}
"""

# Without a verb a file may follow; the verb is then `up`.
VERBS = """\
  local verb= each
  for each in ${{words[2,CURRENT-1]}}; do
    case $each in ({alternatives}) verb=$each; break ;; esac
  done
  case $verb in
{cases}  esac
  case $verb:$words[CURRENT-1] in
    (keys:keys) compadd init issue renew show; return ;;
    (help:help) _{function}_verbs; return ;;
  esac
"""

VERB_FUNCTIONS = """\
_{function}_verbs() {{
  local -a verbs=(
{verbs}  )
  _describe verb verbs
}}

_{function}_words() {{
  local each file=
  if [[ $verb == logs ]]; then
    for each in ${{words[2,CURRENT-1]}}; do
      [[ $each == logs || $each == -* ]] || {{ file=$each; break; }}
    done
    if [[ -n $file ]]; then
      compadd -- ${{(f)"$($words[1] logs $file --list 2>/dev/null)"}}
      return
    fi
  fi
  [[ -n $verb ]] || _{function}_verbs
  _files
}}

"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def escaped(text, characters):
    return "".join("\\" + each if each in characters + "\\" else each for each in text)


def spec(option):
    """An option in the form of _arguments; a letter and its long name form one entry, and only one is offered."""
    what = "[" + escaped(option.what, "[]") + "]"
    names = ["--" + option.name + ("=" if option.metavar else "")]
    value = ""
    if option.metavar:
        value = f":{escaped(option.metavar, ':')}:{ACTIONS.get(option.metavar, ' ')}"
    if option.letter:
        names.append(option.letter)
    without = f"({option.letter} --{option.name})" if option.letter else ""
    again = "*" if option.metavar == "KEY=VALUE" else ""
    return [quoted(again + without + name + what + value) for name in names]


def specs(options, indent):
    return "".join(f"{' ' * indent}{line}\n" for option in options for line in spec(option))


def verb_lines(text, options, function):
    """The differences of each verb; `up` stands for none."""
    cases = ""
    for verb in text.verbs:
        own = [option for option in options if verb in option.verbs]
        if own:
            names = f"{verb}|''" if verb == "up" else verb
            cases += f"    ({names}) options+=(\n{specs(own, 6)}    ) ;;\n"
    return VERBS.format(alternatives="|".join(text.verbs), cases=cases, function=function)


def function_of(text):
    options = text.options()
    function = text.program.replace("-", "_")
    before, verbs, words = "", "", "_files"
    if text.verbs:
        lines = "".join(f"    {quoted(verb + ':' + what)}\n" for verb, (_, what) in text.verbs.items())
        before = VERB_FUNCTIONS.format(function=function, verbs=lines)
        verbs = verb_lines(text, options, function)
        words = f"_{function}_words"
    return before + FUNCTION.format(function=function, verbs=verbs, words=words,
                                    options=specs([option for option in options if not option.verbs], 4))


def script_of(texts, keys):
    cases = "".join(f"  ({text.program}) _{text.program.replace('-', '_')} \"$@\" ;;\n" for text in texts)
    return FRAME.format(names=" ".join(text.program for text in texts), cases=cases, keys=" ".join(keys),
                        functions="\n".join(map(function_of, texts)))
