#!/bin/bash
# Builds build-asan: clang with AddressSanitizer, UBSan and thread-safety analysis, the unit tests
# and the fuzz targets, which are the same objects with coverage of edges for libFuzzer. Nothing is
# optimised: with -O1 and coverage of comparisons the compiler takes four times as long. Checks of
# types (vptr) doubled the time of the checked code.
# Usage: scripts/build-asan.sh [--for-fuzzing] [NINJA TARGET...]         default: everything
#   --for-fuzzing: build-asan-fuzz, optimised and with coverage of comparisons, for hours of fuzzing
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build-asan options=(-Doptimization=0 -Dfuzz=edges)
if [ "${1:-}" = --for-fuzzing ]; then
  folder=build-asan-fuzz options=(-Doptimization=1 -Dfuzz=compares)
  shift
fi
CC=clang-14 CXX=clang++-14 CXXFLAGS="${CXXFLAGS:-} -fno-sanitize=vptr" exec scripts/build.sh --unity "$folder" -Dtests=true -Dunit_only=true -Dtsa=true \
  -Db_sanitize=address,undefined "${options[@]}" -- "$@"
