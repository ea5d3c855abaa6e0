#!/bin/bash
# Makes a Python environment with the packages that some tests compare dtf with (safetensors, numpy,
# pillow, tensorboard, onnx, onnxruntime, scikit-learn, and kubernetes-validate if available) and
# prints its python. Quick if it exists; without a network it prints the reason and exits 69, and
# those tests are skipped. PyTorch, for comparing each op, takes 5 GB, and TensorFlow, for comparing
# each optimizer, 2 GB: they are installed on request.
# Usage: scripts/python-env.sh [FOLDER [--torch] [--tensorflow]]     default: build/python-env
#   DTF_PYTHON=$(scripts/python-env.sh) meson test -C build ...
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/python-env}")
packages=(safetensors numpy pillow tensorboard onnx onnxruntime scikit-learn)
check='import numpy, PIL, onnx, onnxruntime, safetensors.numpy, sklearn, tensorboard'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
get() { "$folder/bin/python" -m pip install --disable-pip-version-check --quiet --timeout 20 --retries 1 "$@"; }
if ! "$folder/bin/python" -c "$check" 2>/dev/null; then
  if ! { python3 -m venv "$folder" && get "${packages[@]}" && "$folder/bin/python" -c "$check"; } >"$log" 2>&1; then
    echo "error: no Python environment with ${packages[*]}: $(tail -1 "$log")" >&2
    exit 69
  fi
fi
if ! "$folder/bin/python" -c 'import kubernetes_validate' 2>/dev/null && ! get kubernetes-validate >"$log" 2>&1; then
  echo "warning: no kubernetes-validate, so the manifests aren't compared with Kubernetes' schemas: $(tail -1 "$log")" >&2
fi
# on_request MODULE PACKAGE THINGS: installs a large package, if it isn't there.
on_request() {
  if ! "$folder/bin/python" -c "import $1" >/dev/null 2>&1 && ! get "$2" >"$log" 2>&1; then
    echo "warning: no $1, so the $3 aren't compared with its own: $(tail -1 "$log")" >&2
  fi
}
for option in "${@:2}"; do
  case $option in
    --torch) on_request torch torch ops ;;
    --tensorflow) on_request tensorflow tensorflow-cpu optimizers ;;
    *) echo "error: unknown option $option: --torch or --tensorflow" >&2; exit 2 ;;
  esac
done
echo "$folder/bin/python"
