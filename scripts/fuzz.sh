#!/bin/bash
# Fuzzes the readers of untrusted bytes with libFuzzer, AddressSanitizer and UBSan
# (scripts/build-asan.sh): each for a time, and on until it has tried 10 000 inputs. Prints for each
# target the inputs tried, the rate, the coverage of the corpus alone and at the end (edges, and
# features, which also count how often an edge was taken), and the number of inputs with new
# coverage, which are in found/<target>/ of the build's folder, beside a failing input. A target
# fails if it found a defect, if it tried fewer inputs, and, for targets that make calls, if it kept
# nothing new in its first run: then the mutator can't use the corpus any more. The rate depends on
# the machine and is not judged. certified, rpc, serve and worker perform handshakes or allocate
# most, and are slow under AddressSanitizer: 1 000 inputs are enough for them. With --fast-build the
# targets are optimised and cover comparisons (build-asan-fuzz, which takes long to build); the last
# three run without AddressSanitizer (scripts/build-fuzz.sh), by the same rules, and their new
# inputs are replayed with it. DTF_FUZZ_JOBS run at once (default 2).
# Usage: scripts/fuzz.sh [--fast-build] [SECONDS] [TARGET...]
#   default: 25 seconds for each target of tests/fuzz/meson.build
set -uo pipefail
cd "$(dirname "$0")/.."
fast_build=
if [ "${1:-}" = --fast-build ]; then
  fast_build=yes
  shift
fi
seconds=${1:-25}
[ $# -gt 0 ] && shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n "s/^  '\(.*\)': \[.*_dep\],$/\1/p" tests/fuzz/meson.build)
[ ${#targets[@]} -gt 0 ] || { echo "no targets found in tests/fuzz/meson.build"; exit 1; }
folder=build-asan
builder=(scripts/build-asan.sh)
if [ -n "$fast_build" ]; then
  folder=build-asan-fuzz
  builder+=(--for-fuzzing)
fi
seconds_max=$((seconds + 1800))  # for targets that need longer even for a few inputs

# Returns whether a target makes calls to whole servers.
makes_calls() { [[ $1 == rpc || $1 == serve || $1 == worker ]]; }
# Returns whether a target runs without AddressSanitizer, and is replayed with it.
replayed() { [ -n "$fast_build" ] && makes_calls "$1"; }
# inputs_min TARGET: the fewest inputs of a run.
inputs_min() {
  if [ "$1" = certified ] || { makes_calls "$1" && [ -z "$fast_build" ]; }; then echo 1000; else echo 10000; fi
}

asan_programs=()
fast_programs=()
for target in "${targets[@]}"; do
  if replayed "$target"; then
    asan_programs+=("tests/fuzz/replay_$target")
    fast_programs+=("tests/fuzz/fuzz_$target")
  else
    asan_programs+=("tests/fuzz/fuzz_$target")
  fi
done
"${builder[@]}" "${asan_programs[@]}" || exit 1
[ ${#fast_programs[@]} -eq 0 ] || scripts/build-fuzz.sh "${fast_programs[@]}" || exit 1

# libFuzzer TARGET LOG ARGUMENT...: one run.
libfuzzer() {
  local target=$1 log=$2 max_len=65536 build=$folder  # a file that reaches every limit
  # the limit in SECURITY.md, "Files"; heap_bound.h bounds the heap of an input
  local seconds_each=10
  shift 2
  if makes_calls "$target"; then max_len=2048 seconds_each=20; fi  # some 200 calls
  if replayed "$target"; then build=build-fuzz; fi
  # UBSan continues after an error unless configured otherwise. Leaks are checked once, at the end.
  # Only the caller of an allocation is recorded: replay_<target> shows the whole stack.
  # -entropic=0: its bookkeeping for inputs with thousands of features took most of the time.
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=malloc_context_size=2:quarantine_size_mb=16 \
    "$build/tests/fuzz/fuzz_$target" -entropic=0 -detect_leaks=0 -len_control=20 -max_len=$max_len -timeout=$seconds_each \
    -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 -artifact_prefix="$folder/found/$target/" "$@" >>"$log" 2>&1
}

# last PATTERN LOG: the number behind the last match.
last() { grep -oE "$1[0-9]+" "$2" | tail -1 | grep -oE '[0-9]+$' || echo 0; }

# children_ms FILE: the processor time of this shell's children, in milliseconds.
children_ms() {
  times >"$1"  # not in a pipe: a subshell has other children
  awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, part, "[ms]"); s += 60 * part[1] + part[2] } printf "%d", 1000 * s }' "$1"
}

# failed TARGET WHY [LOG]: prints the end of the log, and keeps the reason and the first lines of a
# report for the end of the output: other targets print theirs meanwhile.
failed() {
  local begins='ERROR: |SUMMARY: |runtime error: |DTF_CHECK|Test unit written to|^ +#[0-9] '
  echo "== $1: $2"
  {
    echo "== $1: $2"
    [ -z "${3:-}" ] || grep -E "$begins" "$3" | tail -60 | head -12
  } >"$folder/found/$1.failed"
  [ -z "${3:-}" ] || tail -60 "$3"
  return 1
}

# replay_kept TARGET SINCE: replays inputs that a target without AddressSanitizer has kept since the
# file SINCE was made, with AddressSanitizer and leak checks.
replay_kept() {
  local log=$folder/found/$1.asan.log kept
  mapfile -t kept < <(find "$folder/found/$1" -type f -newer "$2")
  [ ${#kept[@]} -gt 0 ] || return 0
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=max_allocation_size_mb=512 \
    "$folder/tests/fuzz/replay_$1" "${kept[@]}" >"$log" 2>&1 && return
  failed "$1" "FAILED under AddressSanitizer: the input named last before the report, in $folder/found/$1/" "$log"
}

# fuzz_one TARGET: runs it and prints its result, all at once.
fuzz_one() {
  local target=$1 found=$folder/found/$1 log=$folder/found/$1.log begin tried=0 kept=0 run_seconds=$seconds runs=-1
  local is_first=yes inputs_min
  inputs_min=$(inputs_min "$target")
  mkdir -p "$found"
  [ -z "$(find "$found" -type f | head -1)" ] || is_first=
  rm -f "$folder/found/$target.failed"
  : >"$log"
  touch "$found.begin"
  libfuzzer "$target" "$log" -runs=0 "tests/fuzz/corpus/$target" || { failed "$target" "FAILED on its corpus" "$log"; return 1; }
  local seeds=$(last '(INITED|DONE) +cov: ' "$log") seed_features=$(last ' ft: ' "$log")
  begin=$(date +%s%N)
  children_ms "$found.times" >"$found.ms"
  while [ $tried -lt $inputs_min ] && [ "$run_seconds" -gt 0 ]; do
    if ! libfuzzer "$target" "$log" -runs=$runs -max_total_time="$run_seconds" "$found" "tests/fuzz/corpus/$target"; then
      failed "$target" FAILED "$log"
      return 1
    fi
    # Inputs read before the first mutation are not counted.
    tried=$((tried + $(last 'stat::number_of_executed_units: ' "$log") - $(grep -E 'INITED' "$log" | tail -1 | grep -oE '^#[0-9]+' | tr -d '#')))
    kept=$((kept + $(last 'stat::new_units_added: +' "$log")))
    # the missing ones, beside the files and the empty input, which are read again
    runs=$((inputs_min - tried + 1))
    runs=$((runs + $(find "$found" "tests/fuzz/corpus/$target" -type f | wc -l)))
    run_seconds=$((begin / 1000000000 + seconds_max - $(date +%s)))
  done
  local before_ms=$(<"$found.ms")
  children_ms "$found.times" >"$found.ms"
  local used_ms=$(($(<"$found.ms") - before_ms + 1))
  if replayed "$target"; then replay_kept "$target" "$found.begin" || return 1; fi
  local milliseconds=$((($(date +%s%N) - begin) / 1000000)) features=$(last ' ft: ' "$log")
  echo "== $target: $tried inputs in $((milliseconds / 1000)) s, $((tried * 1000 / used_ms)) a second of processor time;" \
    "coverage $seeds edges, $seed_features features of the corpus, $(last 'DONE +cov: ' "$log"), $features at the end;" \
    "$kept new inputs kept"
  if makes_calls "$target" && [ -n "$is_first" ] && [ "$kept" -eq 0 ]; then
    failed "$target" "FAILED: nothing new beyond its corpus, which leaves much unreached"
    return 1
  fi
  [ $tried -ge $inputs_min ] || failed "$target" "FAILED: fewer than $inputs_min inputs: has it become slow?"
}

# Several at once: each is one thread.
export -f fuzz_one failed children_ms inputs_min makes_calls replay_kept replayed libfuzzer last
export seconds folder fast_build seconds_max
printf '%s\n' "${targets[@]}" | xargs -P "${DTF_FUZZ_JOBS:-2}" -I{} bash -c 'fuzz_one {}'
status=$?
for target in "${targets[@]}"; do
  [ ! -e "$folder/found/$target.failed" ] || cat "$folder/found/$target.failed"
done
exit $status
