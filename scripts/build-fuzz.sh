#!/bin/bash
# Builds build-fuzz: clang with UBSan and the fuzz targets that are slow under AddressSanitizer. Without it they try four
# times as many inputs a second; scripts/fuzz.sh shows to build-asan's what they keep.
# Usage: scripts/build-fuzz.sh NINJA TARGET...
set -euo pipefail
cd "$(dirname "$0")/.."
CC=clang-14 CXX=clang++-14 exec scripts/build.sh --unity build-fuzz -Dtests=true -Dunit_only=true -Doptimization=1 \
  -Db_sanitize=undefined -Dfuzz=true -- "$@"
