#!/bin/bash
# clang-tidy over every source file of a build folder made with clang (checks and reasons: .clang-tidy). A file whose
# result is known is skipped: the stamp of its contents, its headers and .clang-tidy is kept in the build folder.
# Usage: scripts/tidy.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
stamps=$folder/tidy
mkdir -p "$stamps"
# The key of a file: itself and every header of the tree; a change to any header checks all again.
headers=$( (cat .clang-tidy; git ls-files '*.h' | xargs cat) | sha256sum | cut -c1-16)
export tidy folder stamps headers
check() {
  key=$( (cat "$1"; echo "$headers") | sha256sum | cut -c1-32)
  [ -f "$stamps/$key" ] && return 0
  output=$("$tidy" -p "$folder" --quiet "$1" 2>/dev/null) || { echo "$output"; return 1; }
  touch "$stamps/$key"
}
export -f check
git ls-files 'common/*.cc' 'daemons/*.cc' 'launcher/*.cc' | xargs -P "$(nproc)" -I{} bash -c 'check {}'
