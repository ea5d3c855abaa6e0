#!/bin/bash
# Configures and builds dtf into its own folder; run again it rebuilds changed files.
# Usage: scripts/build.sh [--unity] FOLDER [meson option...] [-- NINJA TARGET...]
#   It honours CC, CXX and CXXFLAGS.
#   --unity: a new folder passes several files at a time to the compiler, which halves the first
#   build and makes later ones slower: for folders without edits. An existing folder stays as it is.
set -euo pipefail
[ $# -gt 0 ] || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
options=()
fresh_options=()
if [ "$1" = --unity ]; then
  # Precompiled headers pay for many files, not for a few large ones.
  fresh_options=(-Dunity=on -Dunity_size=24 -Db_pch=false)
  shift
fi
folder=$1
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -eq 0 ] || shift
# Debian's ccache in front of the compiler: a second build, or one in another folder or checkout,
# takes seconds.
if command -v ccache >/dev/null; then
  # clang's precompiled headers store the path of their headers: another checkout must not get them.
  case ${CXX:-} in *clang*) export CCACHE_NAMESPACE=$PWD ;; esac
  export CC="ccache ${CC:-gcc}" CXX="ccache ${CXX:-g++}" NVCC="ccache nvcc" CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$PWD
fi
# ld.lld, where it is installed, links a test program in a fifth of the time of ld, and there are a
# hundred of them.
if command -v ld.lld >/dev/null; then export CXX_LD=${CXX_LD:-lld}; fi
if [ -f "$folder/build.ninja" ]; then
  meson configure "$folder" "${options[@]}" >/dev/null
else
  meson setup "$folder" "${fresh_options[@]}" "${options[@]}" >"/tmp/dtf-meson-$$.log" 2>&1 || { tail -20 "/tmp/dtf-meson-$$.log" >&2; rm -f "/tmp/dtf-meson-$$.log"; exit 1; }
  rm -f "/tmp/dtf-meson-$$.log"
fi
ninja -C "$folder" "$@"
