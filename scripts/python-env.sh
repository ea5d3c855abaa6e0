#!/bin/bash
# Makes a Python environment with the packages that some tests compare dtf with (safetensors, numpy,
# pillow, tensorboard, onnx, onnxruntime, scikit-learn, and kubernetes-validate if available) and
# prints its python. Quick if it exists; without a network it prints the reason and exits 69, and
# those tests are skipped. PyTorch, for comparing each op, takes 5 GB: it is installed on request.
# Usage: scripts/python-env.sh [FOLDER [--torch]]                    default: build/python-env
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
if [ "${2:-}" = --torch ] && ! "$folder/bin/python" -c 'import torch' 2>/dev/null && ! get torch >"$log" 2>&1; then
  echo "warning: no torch, so the ops aren't compared with PyTorch's: $(tail -1 "$log")" >&2
fi
echo "$folder/bin/python"
