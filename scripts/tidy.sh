#!/bin/bash
# clang-tidy, one file at a time, over libraries and programs (checks and their reasons:
# .clang-tidy). It checks the files with changes of code, in them or in their headers, in the newest
# 40 commits, and one of 64 shares of the others, chosen by the commit's hash: each commit checks
# another. That share is small because it has no new code: only a change of a distant header or of
# .clang-tidy causes findings there. It alone is run through the static analyzer, which doubles the
# time of a file.
# Each file is compiled on its own, so a header that its .cc includes first is shown to compile
# alone. Files with a known result are skipped: build-tidy/passed/ holds a stamp of the file, of all
# headers and of .clang-tidy.
# Usage: scripts/tidy.sh [--all | --list | FILE...]
#   --all: every check on every file; --list: prints the files, with "all" or "changed" before each
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  --list) scripts/tidy-files.py; exit ;;
  --all | '')
    names=$(scripts/tidy-files.py "$@")
    mapfile -t files <<<"$names"
    ;;
  *) mapfile -t files < <(printf 'all %s\n' "$@") ;;
esac
folder=build-tidy
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
# Only configured: the commands only need the headers of the schemas from a build.
CC=clang-14 CXX=clang++-14 scripts/build.sh "$folder" -Db_pch=false -Dcuda=disabled -Dtests=true -Dunit_only=true -- build.ninja >/dev/null
mapfile -t schemas < <(ninja -C "$folder" -t targets all | sed -n 's/^\(.*\.capnp\.h\): .*/\1/p')
scripts/build.sh "$folder" -- "${schemas[@]}" >/dev/null
stamps=$folder/passed
mkdir -p "$stamps"
headers=$( (cat .clang-tidy; find common daemons launcher tests \( -name '*.h' -o -name '*.capnp' \) -print0 | sort -z |
  xargs -0 cat) | sha256sum | cut -c1-16)
export tidy folder stamps headers
# check WHICH FILE: prints the findings of clang-tidy. WHICH: `all` for all checks; `changed`
# excludes the analyzer.
check() {
  local key output checks=
  [ "$1" = all ] || checks=-clang-analyzer-*
  key=$( (echo "$1 $2 $headers"; cat "$2") | sha256sum | cut -c1-32)
  [ ! -f "$stamps/$key" ] || return 0
  output=$("$tidy" -p "$folder" --quiet --checks="$checks" "$2" 2>&1) || { echo "$output" | grep -vE '^[0-9]+ warnings'; return 1; }
  touch "$stamps/$key"
}
export -f check
echo "clang-tidy: ${#files[@]} files"
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -L1 bash -c 'check "$@"' check
