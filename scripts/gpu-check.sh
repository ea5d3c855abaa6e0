#!/bin/bash
# What a host with a GPU can say about dtf on it: builds (or takes a build folder), runs the device suite on the GPU, compute-sanitizer
# on part of it, and trains the embedded digits there. Ends with a table; exit 0 when all of it passed.
# Usage: scripts/gpu-check.sh [BUILD_FOLDER]      default: build
set -uo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}
case $folder in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
[ -f "$folder/build.ninja" ] || scripts/build.sh --unity "$folder" -Dtests=true -Dcuda=enabled || exit $?
targets=(gpu/libdtf_gpu.so tests/conformance/conformance_device_gpu daemons/psd/psd daemons/workerd/workerd launcher/dtf-launch)
# A folder that was carried here has its programs; ninja may be missing.
if command -v ninja >/dev/null; then ninja -C "$folder" "${targets[@]}" >/dev/null || exit $?; fi
export DTF_GPU_PLUGIN=$PWD/$folder/gpu/libdtf_gpu.so DTF_REQUIRE_GPU=1
rows=()
failed=0

# check NAME COMMAND...: its last line goes into the table.
check() {
  local name=$1 begin=$SECONDS log verdict=ok
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 || { verdict=FAILED; failed=$((failed + 1)); tail -40 "$log" >&2; }
  rows+=("$(printf '%-28s %-7s %4d s  %s' "$name" "$verdict" $((SECONDS - begin)) "$(grep -v '^$' "$log" | tail -1 | cut -c1-110)")")
  rm -f "$log"
}

train() {
  local run file=$1
  run=$(mktemp -d)
  shift
  "$folder/launcher/dtf-launch" "$file" --run-dir "$run/run" -q "$@" >"$run/log" 2>&1
  local code=$?
  tail -3 "$run/log"
  rm -rf "$run"
  return $code
}

suite=$folder/tests/conformance/conformance_device_gpu
check "device suite" "$suite"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck; do
    check "compute-sanitizer $tool" compute-sanitizer --tool "$tool" --error-exitcode 1 "$suite" \
      --gtest_filter='*ComputesByRow*:*Normalises*:*TakesLabelsOfEveryType*:*GathersRows*:*TheFirstOfEquals*'
  done
else
  rows+=("compute-sanitizer            skipped         it is not on the PATH")
fi
for job in digits_softmax digits_lenet; do
  check "trains $job" train configs/clusters/local-sync.yaml --set "train=$PWD/configs/jobs/$job.yaml" \
    --set 'cluster.worker=[{address: "localhost:auto", devices: [gpu:0]}]'
done
echo
(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "nvidia-smi is missing") 2>/dev/null
printf '%s\n' "${rows[@]}"
echo "$((${#rows[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
