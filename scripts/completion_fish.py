"""Completions for fish: see completion.py."""

# The completion of an option's value, by the word in its help; other values have none.
VALUES = {"KEY=VALUE": "-xa '(__dtf_keys)'", "FILE": "-rF", "DIR": "-xa '(__fish_complete_directories)'", "STEP|DIR": "-xa '(__fish_complete_directories)'",
          "WHEN": "-xa 'auto always never'", "LEVEL": "-xa 'debug info warning error'"}

FRAME = """\
# Completions of {names}. Made by scripts/completion.py from what they say with --help.
# The keys of a job's file; a value follows at once.
function __dtf_keys
    printf '%s=\\n' {keys}
end
{functions}"""

# Without a verb a file may follow; the verb is then `up`.
VERBS = """
# The verb that stands there; as `up` where none does.
function __{function}_verb
    for each in (commandline -opc)[2..-1]
        if contains -- $each {verbs}
            echo $each
            return
        end
    end
    echo none
end
function __{function}_is
    contains -- (__{function}_verb) $argv
end
function __{function}_follows
    test (commandline -opc)[-1] = $argv[1]
end
# The tasks of the run whose file stands there.
function __{function}_tasks
    set -l words (commandline -opc)
    for each in $words[2..-1]
        if test $each != logs; and not string match -q -- '-*' $each
            $words[1] logs $each --list 2>/dev/null
            return
        end
    end
end
"""


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def option_line(program, function, option):
    line = f"complete -c {program} -l {option.name}"
    if option.letter:
        line += f" -s {option.letter[1:]}"
    if option.verbs:
        verbs = [word for verb in option.verbs for word in ([verb, "none"] if verb == "up" else [verb])]
        line += f" -n '__{function}_is {' '.join(verbs)}'"
    if option.metavar:
        line += " " + VALUES.get(option.metavar, "-x")
    return line + (f" -d {quoted(option.what)}" if option.what else "") + "\n"


def verb_lines(text, function):
    program = text.program
    lines = VERBS.format(function=function, verbs=" ".join(text.verbs))
    for verb, (_, what) in text.verbs.items():
        lines += f"complete -c {program} -n '__{function}_is none' -a {verb} -d {quoted(what)}\n"
    lines += f"complete -c {program} -n '__{function}_is logs' -a '(__{function}_tasks)'\n"
    lines += f"complete -c {program} -f -n '__{function}_follows keys' -a 'init issue renew show'\n"
    lines += f"complete -c {program} -f -n '__{function}_follows help' -a '{' '.join(text.verbs)}'\n"
    return lines


def function_of(text):
    function = text.program.replace("-", "_")
    return (verb_lines(text, function) if text.verbs else "") + "".join(
        option_line(text.program, function, option) for option in text.options())


def script_of(texts, keys):
    return FRAME.format(keys=" ".join(keys), names=", ".join(text.program for text in texts), functions="\n".join(map(function_of, texts)))
