# Prints what zsh offers at the end of $3, in folder $2, with the completions of folder $1: one a line.
zmodload zsh/zpty
setup="
PROMPT=
fpath=(${(q)1} \$fpath)
cd ${(q)2}
autoload -Uz compinit; compinit -u -D
bindkey '^I' complete-word
say-nul() { print -n '\\0' }
compprefuncs=(say-nul); comppostfuncs=(say-nul exit)
zstyle ':completion:*' insert-tab false
compadd() {
  [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd \"\$@\"; return }
  local -a hits
  builtin compadd -A hits \"\$@\"
  print -rl -- \$hits
}
print READY
"
zpty z zsh -f -i
zpty -w z "$setup"
zpty -r -m z text '*READY*READY*' 
zpty -n -w z "$3"$'\t'
all=
while zpty -r z text; do all+=$text; done
zpty -d z
print -r -- "${${all#*$'\0'}%%$'\0'*}"
