#!/bin/bash
# Fuzzes the readers of untrusted bytes with libFuzzer, AddressSanitizer and UBSan (clang 14), each for a time.
# What it finds new goes to build-fuzz/found/<target>/; a crashing input is printed and stays in the same place.
# Usage: scripts/fuzz.sh [SECONDS] [TARGET...]           default: 60 seconds for each target of tests/fuzz/meson.build
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n "s/^  '\(.*\)': .*/\1/p" tests/fuzz/meson.build)
folder=build-fuzz
compiler=(clang-14)
cxx=(clang++-14)
command -v ccache >/dev/null && { compiler=(ccache clang-14); cxx=(ccache clang++-14); }
if [ ! -f "$folder/build.ninja" ]; then
  CC="${compiler[*]}" CXX="${cxx[*]}" meson setup "$folder" -Dfuzz=true -Dunit_only=true -Db_sanitize=address,undefined \
    -Doptimization=1 -Ddebug=true >"/tmp/dtf-meson-$$.log" 2>&1 ||
    { tail -20 "/tmp/dtf-meson-$$.log" >&2; rm -f "/tmp/dtf-meson-$$.log"; exit 1; }
  rm -f "/tmp/dtf-meson-$$.log"
fi
ninja -C "$folder" "${targets[@]/#/tests/fuzz/fuzz_}" || exit 1

failed=0
for target in "${targets[@]}"; do
  found=$folder/found/$target
  mkdir -p "$found"
  echo "== $target: $seconds s"
  log=$folder/found/$target.log
  # UBSan prints and goes on unless told otherwise.
  if UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$folder/tests/fuzz/fuzz_$target" -max_total_time="$seconds" \
      -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -artifact_prefix="$found/" \
      "$found" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    grep -E 'number_of_executed_units|peak_rss_mb' "$log"
    grep -oE 'cov: [0-9]+' "$log" | tail -1
  else
    tail -40 "$log"
    echo "== $target: FAILED"
    failed=1
  fi
done
exit $failed
