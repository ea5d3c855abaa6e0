#!/bin/bash
# Builds psd, workerd and dtf-launch of the newest version in tests/versions, from git's history,
# for tests of jobs whose tasks are of two versions.
# Usage: scripts/previous-version.sh FOLDER          the build is FOLDER/build
#   Exit code 77: the history is not here; the last line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1")
version=$(find tests/versions -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort -V | tail -1)
commit=$(git log -1 --format=%H -- "tests/versions/$version" 2>/dev/null) || commit=
if [ -z "$commit" ]; then
  echo "SKIPPED: git's history back to version $version is not here"
  exit 77
fi
if [ "$(cat "$folder/commit" 2>/dev/null)" != "$commit" ]; then
  rm -rf "$folder/source" "$folder/build"
  mkdir -p "$folder/source"
  git archive "$commit" | tar -x -C "$folder/source"
  echo "$commit" >"$folder/commit"
fi
# Its own script may not have options of today's.
[ -f "$folder/build/build.ninja" ] ||
  CC="ccache gcc" CXX="ccache g++" meson setup "$folder/build" "$folder/source" -Dunity=on -Dunity_size=24 -Db_pch=false -Dcuda=disabled >"$folder/setup.log"
ninja -C "$folder/build" daemons/psd/psd daemons/workerd/workerd launcher/dtf-launch
