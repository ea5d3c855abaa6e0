#!/bin/bash
# The test command. It installs missing packages, builds, and runs, in this order:
#   1. format, lint, tests of the lint
#   2. a release build of g++: simulators, real processes, conformance, each instruction set
#   3. a build of clang with AddressSanitizer, UBSan and thread-safety analysis: unit, and one of
#      four shares of conformance
#   4. clang-tidy, without unity, on recent files and one of 64 shares of the others
#   5. a build of g++ with ThreadSanitizer: the three libraries with most threads
#   6. each fuzz target for some seconds
# The clock skips nothing. The last lines list the seconds of each step, each skipped case with its
# reason, each failed case with its output, and "N passed, N failed, N skipped". A second run builds
# only what changed.
# Usage: scripts/test.sh [--quick | --all]
#   --quick: 1 and 2
#   --all:   also unit in the release build, all of conformance under the sanitizers, planted
#            mistakes, 10 000 seeds, a slow disk, one core beside four busy loops, booted hosts,
#            Slurm, packages, images, a browser and Prometheus, whole chaos plans, tables and goals
#            of dtf-bench, clang-tidy on every file, each fuzz target for a minute, each op beside
#            PyTorch (5 GB), each optimizer beside TensorFlow (2 GB), 200 starts of the classic
#            program
#   DTF_FUZZ_SECONDS=600 scripts/test.sh                 for each fuzz target (default 5, --all 60)
set -uo pipefail
cd "$(dirname "$0")/.."
mode=${1:-}
case $mode in
  '' | --quick | --all) ;;
  *) echo "usage: scripts/test.sh [--quick | --all]" >&2; exit 2 ;;
esac
is_all=
[ "$mode" != --all ] || is_all=yes
if [ -n "$is_all" ]; then
  export DTF_LAUNCHES=1000 DTF_POWER_CUTS=200 DTF_HAMMER_PUSHES=1000 DTF_TURNED_BITS=500 DTF_ENDINGS=20 DTF_WHOLE_TRAINING=1
fi
fuzz_seconds=${DTF_FUZZ_SECONDS:-${is_all:+60}}
fuzz_seconds=${fuzz_seconds:-5}
. scripts/test-steps.sh

# The suites of the release build. Unit tests run once, under the sanitizers; in the release build
# --all runs them too.
release_suites=(e2e isa sim conformance)
[ -z "$is_all" ] || release_suites+=(unit isa_callers mutants hosts packages slurm tried large bench)

# Returns whether libdtf_gpu.so is compiled, which takes nvcc minutes: with --all, if one of the
# newest 40 commits changed it, or without git's history.
changes_gpu() {
  local oldest
  [ -z "$is_all" ] || return 0
  oldest=$(git rev-list --max-count=41 HEAD 2>/dev/null | sed -n 41p)
  [ -n "$oldest" ] || return 0
  ! git diff --quiet "$oldest" -- gpu common/runtime/device_plugin.h meson.build
}

release_build() {
  scripts/build.sh --unity build -Dtests=true -Dcuda="$cuda" -- build.ninja || return
  local names targets
  names=$(scripts/suite-targets.py build "${release_suites[@]}") || return
  mapfile -t targets <<<"$names"
  scripts/build.sh build -- "${targets[@]}" ${is_all:+tests/e2e/libslow_disk.so}
}

# Tests of real processes, and of broken links, wait more than they compute: three times as many
# tests as cores.
real_processes() {
  local processes=$((3 * $(nproc)))
  MESON_TESTTHREADS=$processes meson_tests build e2e conformance
}
# Builds the suites unit and conformance; scripts/fuzz.sh builds its programs.
sanitized_build() {
  scripts/build-asan.sh build.ninja || return
  local names targets
  names=$(scripts/suite-targets.py build-asan unit conformance) || return
  mapfile -t targets <<<"$names"
  scripts/build-asan.sh "${targets[@]}"
}
conformance_shares=${is_all:+1}
conformance_shares=${conformance_shares:-4}
# share_of SHARES: programs of googletest run one of so many shares of their tests, a different one
# for each commit.
share_of() {
  export GTEST_TOTAL_SHARDS=$1 GTEST_SHARD_INDEX=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0) % $1))
}
# sanitized_tests SUITE [SHARES]
# Under AddressSanitizer, without optimisation. Skips tests that only compare results, over many
# shapes or after a training, and tests that reach a limit of size, which take minutes: the suite
# isa runs the ones for kernels in the release build, and --all the others.
sanitized_tests() {
  local processes=$(($(nproc) + 1)) results=(
    'ConvolutionWays.GiveTheSameBits*' 'ConvolutionWays.ALastBlock*' 'RoundedConvolution.OfNumbers*'
    'RoundedConvolution.HasTheSameBits*' 'BFloat16Product.Gives*' 'Winograd.ComputesSeveralBlocks*'
    'CompiledStepTest.ComputesAMultilayerPerceptron*' 'PooledUpdates.HasTheBits*' 'ShippedJobs.*'
    'TrainingLoop.Learns*' 'DeviceVariablesTest.*Bits*' 'DeviceVariablesTest.Clips*'
    'Segments.SetsThatWouldTakeAllMemory*' 'LayerTemplates.AreBoundedTogether'
    'StandardControlOps.AMisfitIsTold*' 'LargeData.*' '*/DeviceSuite.ConvolvesMany*'
  )
  share_of "${2:-1}"
  GTEST_FILTER=-$(IFS=:; echo "${results[*]}") MESON_TESTTHREADS=$processes meson_tests build-asan "$1"
}

# The libraries with most threads; wire's threads are in the conformance tests. The threads of train
# and daemons are all in the other three, and take as long to build.
threaded_units=(net runtime engine)
[ -z "$is_all" ] || threaded_units+=(train daemons)

thread_build() {
  local unit targets=()
  for unit in "${threaded_units[@]}"; do targets+=("tests/unit/$unit/unit_$unit"); done
  scripts/build.sh --unity build-tsan -Dtests=true -Dunit_only=true -Doptimization=1 -Db_sanitize=thread -- \
    "${targets[@]}" tests/gpu/libdtf_{host,wrong,empty}_plugin.so \
    tests/conformance/conformance_exchange_client_rpc tests/conformance/conformance_session
}

thread_tests() {
  # Simulated worlds, streams and kernels, run thousands of times in one thread each, cannot race.
  # Kernels that compare any number of threads do run.
  local alone=(
    'Schedules.*' '*StreamFuzzTest*' 'ConvolutionWays.*' 'Winograd.*' 'FramedConvolution.*'
    'RoundedConvolution.*' 'TurnedBits.*' 'CompiledStepTest.ComputesAMultilayerPerceptron*'
    '*OnEveryInstructionSet' 'MatrixProduct.Adds*' 'NormLoops.ManyRows*'
  )
  local status=0 log_name
  GTEST_FILTER=-$(IFS=:; echo "${alone[*]}") meson_test build-tsan "${threaded_units[@]}" || status=$?
  share_of "$conformance_shares"
  log_name=conformance
  meson_test build-tsan exchange_client_rpc session || status=$?
  share_of 1
  return $status
}

three_hosts() {
  local status=0
  meson_tests build tried || status=$?
  grep '^|' build/meson-logs/tried.txt
  return $status
}

scripts/install-deps.sh --tests ${is_all:+--packages --browser --slurm} || exit $?

step "format" scripts/format.sh --check
step "lint: the tree keeps its rules" python3 tests/lint/check_tree.py ${is_all:+--all}
step "lint: the lint finds planted mistakes" python3 tests/lint/check_tree_test.py
step "lint: skipped tests are counted" python3 tests/lint/count_tests_test.py
step "lint: what the test command chooses" python3 tests/lint/gate_test.py
step "lint: planted mistakes of the simulators fit the code" python3 tests/sim/mutate_test.py
step "lint: chaos plans and verdicts" python3 tests/chaos/chaos_test.py

# Tests that compare with Python's packages are skipped without them; standard error has the reason.
scripts/python-env.sh build/python-env ${is_all:+--torch --tensorflow} >/dev/null &
python_env=$!
cuda=disabled
if changes_gpu; then
  cuda=auto
  release_suites+=(gpu)
else
  not_run "libdtf_gpu.so, the device suite on a GPU" "the newest 40 commits do not change it; scripts/test.sh --all"
fi
step "build: g++, release" release_build
wait "$python_env"
step "tests: simulated clusters and sessions" meson_tests build sim
# Tests of real processes and of conformance log the RPC methods and error codes that they reach.
# Unit tests do not: fakes reply to many of their calls.
calls=$PWD/build/calls
rm -rf "$calls" && mkdir -p "$calls"
DTF_CALL_LOG=$calls/log step "tests: real processes, conformance" real_processes
step "tests: every RPC method and every error code was met" python3 tests/calls.py "$calls"
step "tests: under each instruction set of this machine" meson_tests build isa
[ $cuda = disabled ] || step "tests: the device suite on a GPU" meson_tests build gpu

if [ "$mode" = --quick ]; then
  for name in "unit and conformance under ASan + UBSan" "clang-tidy" "ThreadSanitizer" "fuzzing"; do not_run "$name" "not run: --quick"; done
else
  step "build: clang, ASan + UBSan, thread-safety analysis" sanitized_build
  # allocator_may_return_null: a test requests more memory than there is, to see the error.
  # malloc_context_size: the default of 30 frames took most of the time.
  export ASAN_OPTIONS=allocator_may_return_null=1:malloc_context_size=6
  step "tests: unit under ASan + UBSan" sanitized_tests unit
  # Worlds of many threads and many small objects, which take ten times as long here.
  step "tests: a share of conformance under ASan + UBSan" sanitized_tests conformance "$conformance_shares"
  unset ASAN_OPTIONS GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX
  step "lint: clang-tidy" scripts/tidy.sh ${is_all:+--all}
  step "build: g++, ThreadSanitizer" thread_build
  TSAN_OPTIONS="suppressions='$PWD/tests/tsan.supp' halt_on_error=1 allocator_may_return_null=1" \
    step "tests: the threads' owners under ThreadSanitizer" thread_tests
  step "fuzz: readers of untrusted bytes, $fuzz_seconds s each" scripts/fuzz.sh ${is_all:+--fast-build} "$fuzz_seconds"
fi

if [ -n "$is_all" ]; then
  . scripts/test-all.sh
else
  for name in "unit in the release build" "all of conformance under ASan + UBSan" "callers of the kernels under each instruction set" \
    "mistakes planted for the simulators" "10 000 seeds" "killed real processes, 5 times" "one core beside four busy loops" \
    "booted hosts: systemd, Kubernetes' pods" "Slurm" "three hosts whose cables are pulled" "packages of Debian" \
    "the image of containers" "the status page in a browser" "a Prometheus server" "whole chaos plans" "tables and goals of dtf-bench" \
    "a tensor of 3 GiB" "train and daemons under ThreadSanitizer" "unit tests of results and limits (sanitized_tests lists them)" "failpoints in an installation" "manual pages and completions" "clang-tidy on every file"; do
    not_run "$name" "not run: scripts/test.sh --all"
  done
fi
report
