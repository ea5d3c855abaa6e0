#!/bin/bash
# The same work by dtf, TensorFlow and PyTorch on this machine's cores, in turns, medians of five:
# one table, in about fifteen minutes, with a line on stderr for each run.
# Usage: scripts/bench-peers.sh [--models | --collectives | --learning FOLDER] [--quick]
#                               [--cpu-time] [--repetitions N] [--only ROW]
#                               [--without TensorFlow|PyTorch|JAX] [--without-ps]
#
# --models: training steps of whole networks on one thread and on two, without a cluster, by dtf,
# PyTorch (default, tuned, compiled) and JAX, beside the peak of the machine; see
# tests/bench/peers/compare_models.py.
# --collectives: the exchange of a sync step without ps, beside the all-reduce of Intel MPI, MPICH
# and gloo, two ranks on this machine; see tests/bench/peers/compare_collectives.py.
# --quick: one turn instead of five, with --models some seconds for each figure.
# --cpu-time: with --models, on one thread: by the CPU time of a step, for machines with other load.
# --without-ps: dtf's workers host the parameters and each other's replicas (rows of sync).
# --only: the rows with this in their name, such as sync, or with --models LeNet.
# --learning: ResNet-20 trained to the end by dtf and PyTorch, in about half an hour, on
# data_batch_1.bin and test_batch.bin of CIFAR-10 in FOLDER; see
# tests/bench/peers/compare_learning.py. Else:
#
#   softmax                784 x 10, batch 100 a worker, gradient descent, 2 ps + 2 workers; global
#                          steps per second, async: each gradient is a step, sync: one update from
#                          both workers is a step
#   784-300-100-10, sync   two hidden layers of ReLU, otherwise the same
#   LeNet, sync            two convolutions, batch 128 a worker, otherwise the same; not by
#                          TensorFlow
#   Criteo's shape, async  a table of 1 000 001 rows of 10 numbers, 26 of them per example, 13
#                          numbers, three layers of 400 (PaddleRec's DNN), or one of 32, with which
#                          most of a step is rows; Adagrad, batch 1000 a worker, 2 ps + 2 workers;
#                          on drawn records, dtf's from a table in text; not by PyTorch
#   null step              push a gradient, get the parameters back, 1 ps + 1 worker; median time of
#                          a step
#
# dtf and TensorFlow place variables alike, round robin. All run with their default threads, except
# PyTorch, which gets half of the cores for each rank, channels last, and an allocator that keeps
# its memory. In the null step TensorFlow's worker halves the fetched values, or it would not fetch
# them: one pass over the memory more than the others. dtf reads real MNIST if
# scripts/fetch-mnist.sh has brought it, else the digits that it draws; the peers feed random data
# of the same shape, at the same cost. TensorFlow: compat.v1, between-graph, SyncReplicasOptimizer
# for sync. PyTorch has no parameter servers: DistributedDataParallel over gloo on 2 ranks; its null
# step is an allreduce. A ratio above 1 means that dtf is faster.
#
# The first run installs the peers into build/peers-env with pip: some 3.5 GB to download and 8 GB
# on the disk, because torch comes with its CUDA libraries; a peer that is --without is not
# installed. A peer that cannot be installed (no network) is left out of the table, with a message,
# and the exit code is 69. Quieter figures: nice -n -5 as root.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
folder=$PWD/build/peers-env
peers=("TensorFlow tensorflow-cpu tensorflow" "PyTorch torch torch")  # name, package, module
compare=compare.py
arguments=()
without=" "
quick=false
while [ $# -gt 0 ]; do
  case $1 in
    --cpu-time | --without-ps)
      arguments+=("$1")
      shift
      ;;
    --quick)
      arguments+=(--repetitions 1)
      quick=true
      shift
      ;;
    --repetitions | --without | --only)
      [ $# -ge 2 ] || { echo "error: $1 needs a value; see scripts/bench-peers.sh --help" >&2; exit 2; }
      arguments+=("$1" "$2")
      [ "$1" != --without ] || without+="$2 "
      shift 2
      ;;
    --learning)
      [ $# -ge 2 ] || { echo "error: $1 needs a folder; see scripts/bench-peers.sh --help" >&2; exit 2; }
      for file in data_batch_1.bin test_batch.bin; do
        [ -r "$2/$file" ] || { echo "error: no $2/$file: it is of CIFAR-10, see configs/jobs/cifar10_resnet.yaml" >&2; exit 65; }
      done
      peers=("PyTorch torch torch" "NumPy numpy numpy")
      compare=compare_learning.py
      arguments+=(--data "$(realpath "$2")")
      shift 2
      ;;
    --collectives)
      peers=("PyTorch torch torch" "NumPy numpy numpy")
      compare=compare_collectives.py
      arguments+=(--environments build/peers-mpi)
      shift
      ;;
    --models)
      peers=("PyTorch torch torch" "JAX jax jax")
      compare=compare_models.py
      shift
      ;;
    *)
      sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' scripts/bench-peers.sh
      case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
      ;;
  esac
done

if [ -f build/build.ninja ]; then meson configure build -Dtests=true >/dev/null || exit; else scripts/build.sh build -Dtests=true >&2 || exit; fi
ninja -C build tests/bench/dtf-bench launcher/dtf-launch daemons/psd/psd daemons/workerd/workerd >&2 || exit

# Makes sure that the package $1 with its module $2 is installed, or prints why it is not.
install_peer() {
  "$folder/bin/python" -c "import $2" >/dev/null 2>&1 && return
  echo "== installing $1 into build/peers-env; this takes minutes and gigabytes" >&2
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder" || return
  "$folder/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --quiet --timeout 60 --retries 1 "$1" >&2 &&
    "$folder/bin/python" -c "import $2" >&2
}

[ $quick = false ] || [ $compare != compare_models.py ] || arguments+=(--seconds 1)
[ $quick = false ] || [ $compare != compare_collectives.py ] || arguments+=(--quick)

# Installs the packages after $2 into an environment of their own, build/peers-mpi/$2: libraries of
# several MPIs have the same names.
install_mpi() {
  local name=$1 at=build/peers-mpi/$2
  shift 2
  [ -e "$at/lib/libmpi.so.12" ] && return
  echo "== installing $* into $at" >&2
  python3 -m venv "$at" && "$at/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --quiet \
    --timeout 60 --retries 1 numpy "$@" >&2 && [ -e "$at/lib/libmpi.so.12" ] && return
  echo "ERROR: $name could not be installed (see above): THE TABLE HAS NO $name" >&2
  arguments+=(--without "$name")
  status=69
}

status=0
for peer in "${peers[@]}"; do
  read -r name package module <<<"$peer"
  case $without in *" $name "*) continue ;; esac
  install_peer "$package" "$module" && continue
  echo "ERROR: $package could not be installed (see above): THE TABLE HAS NO $name, there is nothing to compare dtf with" >&2
  arguments+=(--without "$name")
  status=69
done
if [ $compare = compare_collectives.py ]; then
  install_mpi "Intel MPI" impi impi-rt impi-devel
  install_mpi MPICH mpich mpich
fi
[ $status -eq 0 ] || [ $compare != compare_learning.py ] || exit $status
python3 "tests/bench/peers/$compare" --build build --python "$folder/bin/python" "${arguments[@]}" || exit
exit $status
