# The steps of scripts/test.sh, which reads this file: it runs, times and counts them.

passed=0
failed=0
skipped=0
failures=()
skips=()
failed_cases=()  # with the output of each
step_log=$(mktemp)
step_times=()
started=$SECONDS
times_file=$(mktemp)

# processor_seconds: the processor time of this shell's finished children, into $processor.
processor_seconds() {
  times >"$times_file"  # not in a pipe: a subshell has other children
  processor=$(awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, part, "[ms]"); s += 60 * part[1] + part[2] } printf "%.0f", s }' "$times_file")
}

# step NAME COMMAND...: runs it and prints its time, by the clock and of the processors. It counts
# as one, unless the command counts its test cases itself.
step() {
  local name=$1 begin=$SECONDS ok=1 failed_before=$failed processor_before took
  processor_seconds
  processor_before=$processor
  shift
  counted=0
  echo "== $name"
  exec 3> >(exec tee "$step_log")
  local tee=$!
  "$@" >&3 2>&1 3>&- || ok=0
  exec 3>&-
  processor_seconds
  took="$((SECONDS - begin)) s, $((processor - processor_before)) s of a core"
  # A process that outlives the step may hold the pipe: it gets five seconds.
  for _ in {1..100}; do kill -0 "$tee" 2>/dev/null || break; sleep 0.05; done
  if [ $ok -eq 1 ]; then
    passed=$((passed + 1 - counted))
    echo "== $name: ok ($took)"
  else
    failures+=("$name")
    if [ "$failed" -eq "$failed_before" ]; then
      failed=$((failed + 1))
      failed_cases+=("$(last_lines)")
    fi
    echo "== $name: FAILED ($took)"
  fi
  step_times+=("$took: $name")
}

# last_lines: the last lines of the step, for the end of the log, the part that CI services keep.
last_lines() {
  echo "the last lines of $name:"
  tail -25 "$step_log" | cut -c1-300 | sed 's/^/    /'
}

# not_run NAME WHY: listed at the end among the skipped ones.
not_run() {
  skipped=$((skipped + 1))
  skips+=("$1: $2")
}

# count_cases FOLDER LOG STATUS: counts the cases of a run of `meson test --logbase LOG` that
# ended with STATUS; its own status is whether all passed.
count_cases() {
  local counts more_passed more_failed more_skipped
  mapfile -t counts < <(scripts/count_tests.py "$1" "$2")
  read -r more_passed more_failed more_skipped <<<"${counts[0]:-0 1 0}"
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
  skipped=$((skipped + more_skipped))
  skips+=("${counts[@]:1:more_skipped}")
  failed_cases+=("${counts[@]:1+more_skipped}")
  counted=1
  [ "$3" -eq 0 ] && [ "$more_failed" -eq 0 ]
}

# meson_test FOLDER ARGUMENT...: runs tests, prints the result of each and counts their cases.
# log_name: the name of its log under FOLDER/meson-logs/.
meson_test() {
  local folder=$1 log=${log_name:-tests}
  shift
  rm -f "$folder/meson-logs/$log.json"
  meson test -C "$folder" --no-rebuild --timeout-multiplier 12 --print-errorlogs --logbase "$log" "$@" 2>&1 |
    grep -v '^ninja:'
  count_cases "$folder" "$log" "${PIPESTATUS[0]}"
}

# meson_tests FOLDER SUITE...
meson_tests() {
  local folder=$1 suites=() log_name
  shift
  log_name=$(IFS=-; echo "$*")
  for suite in "$@"; do suites+=(--suite "$suite"); done
  meson_test "$folder" "${suites[@]}"
}

# or_skipped COMMAND...: an exit code of 77 with "SKIPPED: reason" as the last line is no failure.
or_skipped() {
  local status=0 output
  output=$(mktemp)
  "$@" | tee "$output" || status=${PIPESTATUS[0]}
  if [ $status -eq 77 ]; then
    skipped=$((skipped + 1))
    skips+=("$(sed -n 's/^SKIPPED: //p' "$output" | tail -1)")
    counted=1
    status=0
  fi
  rm -f "$output"
  return $status
}

# report: the last lines. Returns the status of the whole command.
report() {
  rm -f "$step_log" "$times_file"
  printf '%s\n' "${skips[@]}" | sed '/^$/d' | sort | uniq -c | sed -E 's/^ *([0-9]+) /skipped (\1 x) /'
  printf '%s\n' "${step_times[@]}" | sort -rn | sed -E 's/^/took /'
  processor_seconds
  echo "== $((SECONDS - started)) s in all, $processor s of a core"
  for name in "${failures[@]}"; do echo "failed: $name"; done
  for line in "${failed_cases[@]}"; do [ -z "$line" ] || echo "failed: $line"; done
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}
