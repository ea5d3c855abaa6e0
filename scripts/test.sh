#!/bin/bash
# Every check that dtf has: installs what is missing, then format, floors, headers, g++ release build with all tests,
# clang with AddressSanitizer + UBSan and thread-safety analysis, clang-tidy, ThreadSanitizer, fuzzing. Run it again and
# only what changed is built. Ends with a line "N passed, N failed".
# Usage: scripts/test.sh [--quick]                       --quick: no sanitizer builds, no fuzzing
#   DTF_FUZZ_SECONDS=600 scripts/test.sh                 for each fuzz target (default 60)
set -uo pipefail
cd "$(dirname "$0")/.."
quick=${1:-}
passed=0
failed=0
failures=()
started=$SECONDS

# step NAME COMMAND...: runs it, says how long it took, counts it.
step() {
  local name=$1 begin=$SECONDS
  shift
  echo "== $name"
  if "$@"; then
    passed=$((passed + 1))
    echo "== $name: ok ($((SECONDS - begin)) s)"
  else
    failed=$((failed + 1))
    failures+=("$name")
    echo "== $name: FAILED ($((SECONDS - begin)) s)"
  fi
}

# meson_tests FOLDER SUITE...: runs the suites and prints each test's result.
meson_tests() {
  local folder=$1 suites=()
  shift
  for suite in "$@"; do suites+=(--suite "$suite"); done
  meson test -C "$folder" --no-rebuild --timeout-multiplier 6 --print-errorlogs "${suites[@]}" 2>&1 | grep -v '^ninja:'
  return "${PIPESTATUS[0]}"
}

# What has threads; wire's are in the conformance test.
threaded_units=(base net ps data runtime train daemons)

thread_build() {
  local unit targets=()
  for unit in "${threaded_units[@]}"; do targets+=("tests/unit/$unit/unit_$unit"); done
  scripts/build.sh --unity build-tsan -Dunit_only=true -Doptimization=1 -Db_sanitize=thread -- \
    "${targets[@]}" tests/conformance/conformance_parameter_client_rpc
}

thread_tests() {
  # Thousands of worlds in one thread each: nothing to find for a minute's work.
  GTEST_FILTER='-Schedules.*' meson test -C build-tsan --no-rebuild --timeout-multiplier 6 --print-errorlogs "${threaded_units[@]}" \
    parameter_client_rpc 2>&1 | grep -v '^ninja:'
  return "${PIPESTATUS[0]}"
}

scripts/install-deps.sh --tests || exit $?

step "format" scripts/format.sh --check
step "lint: floors, headers, tests beside units, file sizes" python3 tests/lint/check_tree.py
step "lint: the lint finds planted mistakes" python3 tests/lint/check_tree_test.py
step "build: g++, release" scripts/build.sh --unity build -Dtests=true
step "tests: unit and conformance" meson_tests build unit conformance
step "tests: simulated clusters, 2 000 seeds" meson_tests build sim
# Without it the tests that need Python's packages skip themselves; the line above them says why.
scripts/python-env.sh build/python-env >/dev/null
step "tests: real processes" meson_tests build e2e
if [ "$quick" != --quick ]; then
  step "build: clang, ASan + UBSan, thread-safety analysis, fuzz targets" scripts/build-asan.sh
  # allocator_may_return_null: a test asks for more memory than there is, to see the error.
  ASAN_OPTIONS=allocator_may_return_null=1 \
    step "tests: unit and conformance under ASan + UBSan" meson_tests build-asan unit conformance
  step "lint: clang-tidy" scripts/tidy.sh build-asan
  step "build: g++, ThreadSanitizer" thread_build
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=1 allocator_may_return_null=1" \
    step "tests: unit tests of the threads' owners under ThreadSanitizer" thread_tests
  step "fuzz: every reader of untrusted bytes, ${DTF_FUZZ_SECONDS:-60} s each" \
    scripts/fuzz.sh "${DTF_FUZZ_SECONDS:-60}"
fi
echo "== $((SECONDS - started)) s in all"
for name in "${failures[@]}"; do echo "failed: $name"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
