#!/bin/bash
# Checks dtf on a host with a GPU: builds (or takes a build folder), runs the device suite on the
# GPU, compute-sanitizer on part of it, trains the embedded digits there, and measures steps of
# whole networks beside PyTorch, if python3 has it. Ends with a table; exit 0 when all of it passed.
# Usage: scripts/gpu-check.sh [--quick] [--only WORD] [BUILD_FOLDER]
#        scripts/gpu-check.sh --pack FOLDER [BUILD_FOLDER]
#   BUILD_FOLDER: default: build
#   --quick:      without torch.compile, and fewer runs
#   --only:       only the checks with WORD in their name
#   --pack:       copies its part of a build, and the libraries of this host, into FOLDER (70 MB),
#                 which with this checkout's configs/, scripts/ and tests/bench/peers/ may be
#                 carried to a host with a GPU but without dtf's libraries:
#                 scripts/gpu-check.sh FOLDER
set -uo pipefail
cd "$(dirname "$0")/.."
targets=(gpu/libdtf_gpu.so tests/conformance/conformance_device_gpu daemons/psd/psd daemons/workerd/workerd launcher/dtf-launch
  tests/bench/dtf-bench)
pack= only= peers=--compile
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,10s/^# //p' "$0"; exit 0 ;;
    --pack | --only)
      [ $# -ge 2 ] || { echo "error: $1 needs a value; see scripts/gpu-check.sh --help" >&2; exit 2; }
      [ "$1" = --pack ] && pack=$2 || only=$2
      shift 2 ;;
    --quick) peers=--quick; shift ;;
    -*) echo "error: there is no option $1; see scripts/gpu-check.sh --help" >&2; exit 2 ;;
    *) break ;;
  esac
done
folder=${1:-build}
if [ ! -d "$folder/lib-of-host" ]; then  # not one that --pack made
  [ -f "$folder/build.ninja" ] || scripts/build.sh --unity "$folder" -Dtests=true -Dcuda=enabled || exit $?
  ninja -C "$folder" "${targets[@]}" >/dev/null || exit $?
fi

# Prints the shared libraries of FILE beyond every Linux's own and NVIDIA's, a line each.
libraries_of() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -v -E '/(libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libcuda|libcu[a-z]+Lt|libcudnn[a-z_]*)\.so'
}

if [ -n "$pack" ]; then
  mkdir -p "$pack/lib-of-host" || exit
  for target in "${targets[@]}"; do
    mkdir -p "$pack/$(dirname "$target")" && strip -o "$pack/$target" "$folder/$target" || exit
    for library in $(libraries_of "$folder/$target"); do cp -L "$library" "$pack/lib-of-host/" || exit; done
  done
  du -sh "$pack"
  exit 0
fi

# CUDA's libraries on this host: from PyTorch's wheels, or a toolkit.
wheels=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)
for library in libcudnn.so.9 libcublasLt.so.13; do
  for place in ${wheels:+"$wheels"/*/lib} "${CUDA_HOME:-/usr/local/cuda}/lib64"; do
    [ -e "$place/$library" ] || continue
    export LD_LIBRARY_PATH=$place${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    break
  done
done
[ ! -d "$folder/lib-of-host" ] || export LD_LIBRARY_PATH=$PWD/$folder/lib-of-host:$LD_LIBRARY_PATH
export DTF_GPU_PLUGIN=$PWD/$folder/gpu/libdtf_gpu.so DTF_REQUIRE_GPU=1
rows=()
failed=0 checks=0

# check NAME COMMAND...: its last line goes into the table.
check() {
  local name=$1 begin=$SECONDS log verdict=ok
  shift
  [[ $name == *"$only"* ]] || return 0
  checks=$((checks + 1))
  log=$(mktemp)
  "$@" >"$log" 2>&1 || {
    verdict=FAILED; failed=$((failed + 1))
    { grep -A12 -E 'Failure|error:|^Error|Traceback' "$log" | head -80; tail -20 "$log"; } >&2
  }
  rows+=("$(printf '%-36s %-7s %4d s  %s' "$name" "$verdict" $((SECONDS - begin)) "$(grep -v '^$' "$log" | tail -1 | cut -c1-110)")")
  rm -f "$log"
}

# The tasks of a job: one worker's GPU and, with "a ps", parameter servers beside it.
worker='worker: [{address: "localhost:auto", devices: [gpu:0]}]'
tasks_with() {
  [ "$1" = "a ps" ] && echo "cluster={ps: [\"localhost:auto\"], $worker}" || echo "cluster={$worker}"
}

# keeps WITH RUN: fails if a job without a ps did not leave its variables on the GPU.
keeps() {
  [ "$1" = "a ps" ] || grep -q 'event=variables kept_on=gpu:0$' "$2"/logs/worker-0.*.log || {
    echo "error: the GPU did not keep the variables:"; grep -h event=variables "$2"/logs/*; return 1
  }
}

# train WITH JOB ACCURACY [OVERRIDE...]: WITH "a ps" or "no ps"; fails if the accuracy of the
# evaluation is below ACCURACY.
train() {
  local run with=$1 job=$2 wanted=$3 code override settings=()
  shift 3
  for override in "$@"; do settings+=(--set "$override"); done
  run=$(mktemp -d)
  "$folder/launcher/dtf-launch" configs/clusters/local-sync.yaml --run-dir "$run/run" --set "train=$PWD/configs/jobs/$job.yaml" \
    --set "$(tasks_with "$with")" "${settings[@]}" >"$run/log" 2>&1
  code=$?
  tail -40 "$run/log"
  keeps "$with" "$run/run" || code=1
  python3 - "$run/run/summary.json" "$wanted" <<'END' || code=1
import json, sys
summary = json.load(open(sys.argv[1]))
accuracy, rate = summary["eval"]["accuracy"], summary["steps_per_second"]
print(f"accuracy {accuracy:.4f} (wanted {sys.argv[2]}), loss {summary['final_loss']:.4f}, {rate:.0f} steps/s")
sys.exit(accuracy < float(sys.argv[2]))
END
  rm -rf "$run"
  return $code
}

suite=$folder/tests/conformance/conformance_device_gpu
check "device suite" "$suite"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck; do
    check "compute-sanitizer $tool" compute-sanitizer --tool "$tool" --error-exitcode 1 "$suite" \
      --gtest_filter='*ComputesByRow*:*Normalises*:*TakesLabelsOfEveryType*:*GathersRows*:*TheFirstOfEquals*:*OfAPs*:*ClipsBy*:*FindsStat*:*AddsABias*'
  done
else
  rows+=("compute-sanitizer                    skipped         it is not on the PATH")
fi
check "trains digits_softmax" train "a ps" digits_softmax 0.9
check "trains digits_softmax without a ps" train "no ps" digits_softmax 0.9
check "trains digits_lenet" train "a ps" digits_lenet 0.97
check "trains digits_lstm" train "a ps" digits_lstm 0.9
if [ -r data/mnist/train-images-idx3-ubyte.gz ]; then
  check "trains mnist_lenet" train "a ps" mnist_lenet 0.99
  check "trains mnist_lenet, no ps, bfloat16" train "no ps" mnist_lenet 0.99 train.precision=bfloat16
else
  rows+=("trains mnist_lenet                   skipped         scripts/fetch-mnist.sh brings its data")
fi
# resnet WITH [OVERRIDE...]: ResNet-50 on random images of ImageNet's size.
resnet() {
  local run with=$1 code override settings=()
  shift
  for override in "$@"; do settings+=(--set "$override"); done
  run=$(mktemp -d)
  python3 - "$run" <<'END' || return
import sys
import numpy
random = numpy.random.default_rng(1)
numpy.save(sys.argv[1] + "/images.npy", random.integers(0, 256, (256, 224, 224, 3), dtype=numpy.uint8))
numpy.save(sys.argv[1] + "/labels.npy", random.integers(0, 256, 256, dtype=numpy.uint8))
END
  local data="{format: npy, features: $run/images.npy, labels: $run/labels.npy, features_as: pixels}"
  "$folder/launcher/dtf-launch" configs/clusters/local-sync.yaml --run-dir "$run/run" \
    --set "train=$PWD/configs/jobs/imagenet_resnet50.yaml" --set train.data="{train: $data, eval: $data, batch_size: 64}" \
    --set train.steps=40 --set train.precision=bfloat16 --set "$(tasks_with "$with")" "${settings[@]}" >"$run/log" 2>&1
  code=$?
  tail -40 "$run/log"
  keeps "$with" "$run/run" || code=1
  python3 - "$run/run/summary.json" <<'END' || code=1
import json, math, sys
summary = json.load(open(sys.argv[1]))
print(f"loss {summary['final_loss']:.3f}, {summary['examples_per_second']:.0f} images/s")
sys.exit(not math.isfinite(summary["final_loss"]))
END
  rm -rf "$run"
  return $code
}
check "trains ResNet-50, bfloat16" resnet "a ps"
check "trains ResNet-50, overlapped" resnet "a ps" 'train.replication={mode: async, overlap: true}'
check "trains ResNet-50, streamed" resnet "a ps" shared_memory=false
check "trains ResNet-50, whole gradients" resnet "a ps" shared_memory=false stream_gradients=false
check "trains ResNet-50 without a ps" resnet "no ps"

if python3 -c 'import torch' 2>/dev/null; then
  comparison=$(mktemp)
  check "steps beside PyTorch's" bash -c "set -o pipefail; python3 tests/bench/peers/compare_gpu.py --bench '$folder/tests/bench/dtf-bench' $peers | tee '$comparison'"
  cat "$comparison"
  rm -f "$comparison"
else
  rows+=("steps beside PyTorch's               skipped         python3 has no torch")
fi
echo
(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "nvidia-smi is missing") 2>/dev/null
printf '%s\n' "${rows[@]}"
[ "$checks" -gt 0 ] || { echo "error: no check has '$only' in its name" >&2; exit 2; }
echo "$checks checks, $failed failed"
[ "$failed" -eq 0 ]
