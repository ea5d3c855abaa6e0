#!/bin/bash
# Every check that dtf has: installs what is missing, then format, floors, headers, g++ release build with all tests,
# clang with AddressSanitizer + UBSan and thread-safety analysis, clang-tidy, ThreadSanitizer, fuzzing. Run it again and
# only what changed is built. Ends with the line "N passed, N failed, N skipped": test cases and the other steps, with the
# reasons of those that were skipped above it.
# What the mode leaves out counts as skipped, by name.
# What finds least comes last, and isn't begun once DTF_TEST_MINUTES (default 30) are over, ASan and UBSan once half as many
# again are: the end says so.
# Usage: scripts/test.sh [--quick | --all]
#   --quick: no sanitizer builds, no fuzzing
#   --all:   longer proofs too, for some hours: 10 000 simulated clusters and sessions, 1 000 launches, fuzzing for 10
#            minutes each, 200 power cuts, the tests that kill 5 times, a tensor of 3 GiB, the tables of dtf-bench that have
#            goals, each op beside PyTorch's (5 GB)
#   DTF_FUZZ_SECONDS=600 scripts/test.sh                 for each fuzz target (default 25)
set -uo pipefail
cd "$(dirname "$0")/.."
mode=${1:-}
case $mode in
  '' | --quick | --all) ;;
  *) echo "usage: scripts/test.sh [--quick | --all]" >&2; exit 2 ;;
esac
repeat=1
whole_install=
torch=
if [ "$mode" = --all ]; then
  repeat=5
  torch=--torch
  whole_install=yes
  export DTF_FUZZ_SECONDS=${DTF_FUZZ_SECONDS:-600} DTF_LAUNCHES=1000 DTF_POWER_CUTS=200 DTF_HAMMER_PUSHES=1000 DTF_WHOLE_TRAINING=1
fi
passed=0
failed=0
skipped=0
failures=()
skips=()
failed_cases=()  # with what each said
started=$SECONDS

# step NAME COMMAND...: runs it, says how long it took, counts it: as one, unless it counts its test cases itself.
step() {
  local name=$1 begin=$SECONDS ok=1 failed_before=$failed
  shift
  counted=0
  echo "== $name"
  "$@" || ok=0
  if [ $ok -eq 1 ]; then
    passed=$((passed + 1 - counted))
    echo "== $name: ok ($((SECONDS - begin)) s)"
  else
    [ "$failed" -gt "$failed_before" ] || failed=$((failed + 1))
    failures+=("$name")
    echo "== $name: FAILED ($((SECONDS - begin)) s)"
  fi
}

minutes=${DTF_TEST_MINUTES:-30}

# within MINUTES NAME: whether so little time is over. Else what is called NAME is skipped, and told in the end.
within() {
  if [ "$mode" = --all ] || [ $((SECONDS - started)) -lt $((60 * $1)) ]; then return 0; fi
  skipped=$((skipped + 1))
  skips+=("$2: not begun, $1 minutes are over: DTF_TEST_MINUTES, or --all")
  return 1
}

# step_in_time NAME COMMAND...
step_in_time() {
  if within "$minutes" "$1"; then step "$@"; fi
}

# not_run NAME WHY: told in the end, as what is skipped.
not_run() {
  skipped=$((skipped + 1))
  skips+=("$1: $2")
}

# meson_test FOLDER ARGUMENT...: runs tests, prints each one's result and counts their cases.
meson_test() {
  local folder=$1 status counts
  shift
  rm -f "$folder/meson-logs/testlog.json"
  meson test -C "$folder" --no-rebuild --timeout-multiplier 6 --print-errorlogs "$@" 2>&1 | grep -v '^ninja:'
  status=${PIPESTATUS[0]}
  mapfile -t counts < <(scripts/count_tests.py "$folder")
  read -r more_passed more_failed more_skipped <<<"${counts[0]:-0 1 0}"
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
  skipped=$((skipped + more_skipped))
  skips+=("${counts[@]:1:more_skipped}")
  failed_cases+=("${counts[@]:1+more_skipped}")
  counted=1
  [ "$status" -eq 0 ] && [ "$more_failed" -eq 0 ]
}

# meson_tests FOLDER SUITE...
meson_tests() {
  local folder=$1 suites=()
  shift
  for suite in "$@"; do suites+=(--suite "$suite"); done
  meson_test "$folder" "${suites[@]}"
}

# or_skipped COMMAND...: its exit code 77 with "SKIPPED: why" as its last line isn't a failure, and is told in the end.
or_skipped() {
  local status=0 said
  said=$(mktemp)
  "$@" | tee "$said" || status=${PIPESTATUS[0]}
  if [ $status -eq 77 ]; then
    skipped=$((skipped + 1))
    skips+=("$(sed -n 's/^SKIPPED: //p' "$said" | tail -1)")
    counted=1
    status=0
  fi
  rm -f "$said"
  return $status
}

# three_hosts: and the table of what happened.
three_hosts() {
  local status=0
  meson_tests build tried || status=$?
  grep '^|' build/meson-logs/testlog.txt
  return $status
}

# What saves, and is killed while it does.
slow_disk_tests() {
  LD_PRELOAD=$PWD/build/tests/e2e/libslow_disk.so meson_test build gather recovery ps_recovery ps_replica resume ending \
    pause snapshot checkpoint_kill ssh_apart ssh_model
}

# What has threads; wire's are in the conformance test.
threaded_units=(base net ps data runtime engine train daemons)

thread_build() {
  local unit targets=()
  for unit in "${threaded_units[@]}"; do targets+=("tests/unit/$unit/unit_$unit"); done
  scripts/build.sh --unity build-tsan -Dtests=true -Dunit_only=true -Doptimization=1 -Db_sanitize=thread -- \
    "${targets[@]}" tests/gpu/libdtf_{host,wrong,empty}_plugin.so \
    tests/conformance/conformance_parameter_client_rpc tests/conformance/conformance_session
}

thread_tests() {
  # Thousands of worlds in one thread each: nothing to find for a minute's work.
  GTEST_FILTER='-Schedules.*' meson_test build-tsan "${threaded_units[@]}" parameter_client_rpc session
}

scripts/install-deps.sh --tests || exit $?

step "format" scripts/format.sh --check
step "lint: floors, headers, tests beside units, file sizes" python3 tests/lint/check_tree.py
step "lint: the lint finds planted mistakes" python3 tests/lint/check_tree_test.py
step "lint: skipped tests are counted" python3 tests/lint/count_tests_test.py
step "lint: the mistakes that the simulators must find fit the code" python3 tests/sim/mutate_test.py
step "build: g++, release" scripts/build.sh --unity build -Dtests=true
step "tests: unit" meson_tests build unit
# These tests and those of real processes write down which RPC methods and error codes they met. Unit tests don't: a
# fake answers many of their calls.
calls=$PWD/build/calls
rm -rf "$calls" && mkdir -p "$calls"
DTF_CALL_LOG=$calls/log step "tests: conformance" meson_tests build conformance
step "tests: the device suite on a GPU" meson_tests build gpu
step "tests: under each instruction set that this machine has" meson_tests build isa
step "tests: simulated clusters and sessions, 2 000 seeds" meson_tests build sim
# Without it the tests that need Python's packages skip themselves; the line above them says why.
scripts/python-env.sh build/python-env ${torch:+"$torch"} >/dev/null
DTF_CALL_LOG=$calls/log step "tests: real processes" meson_tests build e2e
# A host takes root; where none can be booted, the line that counts says why.
step "tests: systemd and Kubernetes' pods, on hosts that are booted" meson_tests build hosts
step "tests: what is installed beside the programs" meson_tests build packages
step "tests: every RPC method and every error code was met" python3 tests/calls.py "$calls"
step "chaos: the plans and the verdicts" python3 tests/chaos/chaos_test.py
step "chaos: tasks that are killed and frozen" scripts/chaos.sh --quick
step "install: no failpoints in it" scripts/check-install.sh build ${whole_install:+--whole}
if [ "$mode" = --all ]; then
  scripts/install-deps.sh --packages --browser --slurm
  step "tests: a Slurm of two hosts" meson_tests build slurm
  step "tests: three hosts whose cables are pulled, that are killed, whose disks are full, whose keys are changed" three_hosts
  step "packages: built, and looked at by lintian" scripts/build-deb.sh
  step "packages: installed in a Debian of their own, and removed" or_skipped scripts/check-deb.sh
  step "container image: built without a registry, and a job in it" or_skipped scripts/check-image.sh
  step "tests: simulated clusters, 10 000 seeds" build/tests/sim/sim --seeds 0:10000
  step "tests: simulated sessions, 10 000 seeds" build/tests/session_sim/session_sim --seeds 0:10000
  step "tests: real processes that are killed, $repeat times" \
    meson_test build --repeat "$repeat" checkpoint_kill resume ending robustness sleepers
  step "tests: real processes on a disk that takes 60 ms to make anything durable" slow_disk_tests
  step "chaos: the whole plan" scripts/chaos.sh
  step "tests: the status page in a browser" or_skipped python3 tests/e2e/status_page_test.py build
  step "tests: a Prometheus server scrapes a job" python3 tests/e2e/prometheus_test.py build
  step "tests: a tensor of 3 GiB between two tasks" meson_tests build large
  step "bench: the goals beside memcpy and a raw socket" build/tests/bench/dtf-bench --check optimizers refill edges
  step "bench: a graph of 10 000 nodes in parts in under a second" build/tests/bench/dtf-bench --check graph
else
  for name in "a Slurm of two hosts" "real processes on a slow disk" "tried: cables pulled, hosts killed, disks full and keys changed on three hosts" \
    "packages for Debian: built, looked at by lintian, installed, used and removed" "the image of containers: built, and a job in it" "the status page in a browser" \
    "a Prometheus server that scrapes a job" "the whole plan of chaos.sh" "the goals of dtf-bench" \
    "a tensor of 3 GiB between two tasks"; do
    not_run "$name" "not run, for it takes long or installs much: scripts/test.sh --all"
  done
fi
if [ "$mode" = --quick ]; then
  for name in "ASan + UBSan, thread-safety analysis" "clang-tidy" "ThreadSanitizer" "fuzzing"; do not_run "$name" "not run: --quick"; done
else
  if within $((3 * minutes / 2)) "ASan + UBSan, thread-safety analysis"; then
    step "build: clang, ASan + UBSan, thread-safety analysis, fuzz targets" scripts/build-asan.sh
    # allocator_may_return_null: a test asks for more memory than there is, to see the error.
    ASAN_OPTIONS=allocator_may_return_null=1 \
      step "tests: unit and conformance under ASan + UBSan" meson_tests build-asan unit conformance
  fi
  step_in_time "lint: clang-tidy" scripts/tidy.sh build-asan
  step_in_time "build: g++, ThreadSanitizer" thread_build
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=1 allocator_may_return_null=1" \
    step_in_time "tests: unit tests of the threads' owners under ThreadSanitizer" thread_tests
  step_in_time "fuzz: readers of untrusted bytes, ${DTF_FUZZ_SECONDS:-25} s each" scripts/fuzz.sh "${DTF_FUZZ_SECONDS:-25}"
fi
echo "== $((SECONDS - started)) s in all"
printf '%s\n' "${skips[@]}" | sed '/^$/d' | sort | uniq -c | sed -E 's/^ *([0-9]+) /skipped (\1 x) /'
for name in "${failures[@]}"; do echo "failed: $name"; done
for line in "${failed_cases[@]}"; do [ -z "$line" ] || echo "failed: $line"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
