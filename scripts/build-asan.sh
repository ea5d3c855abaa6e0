#!/bin/bash
# Builds build-asan: clang with AddressSanitizer, UBSan and thread-safety analysis, the unit tests
# and the fuzz targets, which are the same objects with coverage for libFuzzer.
# Usage: scripts/build-asan.sh [NINJA TARGET...]         default: everything
set -euo pipefail
cd "$(dirname "$0")/.."
CC=clang-14 CXX=clang++-14 exec scripts/build.sh --unity build-asan -Dtests=true -Dunit_only=true -Doptimization=1 -Dtsa=true \
  -Db_sanitize=address,undefined -Dfuzz=true -- "$@"
