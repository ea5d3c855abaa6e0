#!/bin/bash
# Fuzzes the readers of untrusted bytes with libFuzzer, AddressSanitizer and UBSan (scripts/build-asan.sh), each for a time.
# DTF_FUZZ_JOBS of them run at once (default 2). What it finds new goes to build-asan/found/<target>/; a crashing input is printed and stays in the same place.
# Usage: scripts/fuzz.sh [SECONDS] [TARGET...]           default: 60 seconds for each target of tests/fuzz/meson.build
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n "s/^  '\(.*\)': .*/\1/p" tests/fuzz/meson.build)
folder=build-asan
scripts/build-asan.sh "${targets[@]/#/tests/fuzz/fuzz_}" || exit 1

# fuzz_one TARGET: runs it and prints what it reached, all at once.
fuzz_one() {
  local target=$1 found=$folder/found/$1 log=$folder/found/$1.log
  mkdir -p "$found"
  # UBSan prints and goes on unless told otherwise. -max_len: a message or a file that reaches every limit.
  if UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$folder/tests/fuzz/fuzz_$target" -max_total_time="$seconds" \
      -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -artifact_prefix="$found/" \
      "$found" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "== $target: $seconds s, $(grep -oE 'cov: [0-9]+' "$log" | tail -1), $(grep -oE 'number_of_executed_units: [0-9]+' "$log")"
  else
    echo "== $target: FAILED"$'\n'"$(tail -40 "$log")"
    return 1
  fi
}

# Two at once: each is one thread.
export -f fuzz_one
export seconds folder
printf '%s\n' "${targets[@]}" | xargs -P "${DTF_FUZZ_JOBS:-2}" -I{} bash -c 'fuzz_one {}'
