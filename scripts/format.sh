#!/bin/bash
# Formats every C++ and CUDA file with clang-format 14; with --check it only reports unformatted
# files.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.cu')
if [ "${1:-}" = --check ]; then
  exec "$format" --dry-run --Werror "${files[@]}"
fi
exec "$format" -i "${files[@]}"
