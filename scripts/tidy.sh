#!/bin/bash
# clang-tidy over the libraries and programs (checks and reasons: .clang-tidy), with the commands of a build folder that
# was built with clang. In a unity build each file stands for several. A file whose result is known is skipped: the stamp
# of its sources, of all headers and of .clang-tidy is kept in the build folder.
# Usage: scripts/tidy.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
stamps=$folder/tidy
mkdir -p "$stamps"
headers=$( (cat .clang-tidy; git ls-files '*.h' '*.capnp' | xargs cat) | sha256sum | cut -c1-16)
export tidy folder stamps headers
# check FILE: as the build folder names it; a unity file has a line for each source.
check() {
  key=$( (echo "$1 $headers"; cd "$folder"; cat "$1"; sed -n 's/^#include *<\(.*\)>$/\1/p' "$1" | xargs -r cat) 2>/dev/null | sha256sum | cut -c1-32)
  [ -f "$stamps/$key" ] && return 0
  output=$("$tidy" -p "$folder" --quiet "$folder/$1" 2>&1) || { echo "$output" | grep -vE '^[0-9]+ warnings'; return 1; }
  touch "$stamps/$key"
}
export -f check
python3 - "$folder" <<'EOF' | xargs -P "$(nproc)" -I{} bash -c 'check {}'
import json, re, sys
commands = json.load(open(sys.argv[1] + "/compile_commands.json"))
for file in sorted({each["file"] for each in commands}):
    if re.match(r"(\.\./)?(common|daemons|launcher)/", file) and re.search(r"\.(cc|cpp)$", file):
        print(file)
EOF
