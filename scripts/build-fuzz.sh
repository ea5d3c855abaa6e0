#!/bin/bash
# Builds build-fuzz: clang with UBSan for dtf's own code and the fuzz targets that are slow under
# AddressSanitizer, made to be fast: scripts/fuzz.sh replays their inputs in build-asan, which
# checks everything.
# Usage: scripts/build-fuzz.sh NINJA TARGET...
set -euo pipefail
cd "$(dirname "$0")/.."
# Checks of types (vptr) and of the templates of std and kj doubled the time of the checked code.
CC=clang-14 CXX=clang++-14 CXXFLAGS="-fno-sanitize=vptr -fsanitize-ignorelist=$PWD/tests/fuzz/unsanitized.txt" exec scripts/build.sh --unity build-fuzz -Dtests=true -Dunit_only=true -Doptimization=2 \
  -Db_sanitize=undefined -Dfuzz=compares -- "$@"
