#!/bin/bash
# Runs tests on a bad machine: four at a time on one core, beside four busy loops on the same core,
# and every fsync takes 60 ms longer (tests/e2e/slow_disk.cc). A test that passes on a quiet machine
# must pass here: no deadline may depend on the speed of the machine.
# Usage: scripts/loaded-tests.sh BUILD_FOLDER [meson test argument...]
#   default: the suites unit, conformance and e2e
set -uo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }
folder=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- --suite unit --suite conformance --suite e2e
slow_disk=$folder/tests/e2e/libslow_disk.so
[ -f "$slow_disk" ] || { echo "error: $slow_disk is missing: build $folder with -Dtests=true" >&2; exit 2; }
# ld.so splits LD_PRELOAD at spaces, and ignores files that it can't load.
preload=$(mktemp --suffix=.so)
trap 'rm -f "$preload"' EXIT
cp "$slow_disk" "$preload"
if LD_PRELOAD=$preload /bin/true 2>&1 | grep -q .; then
  echo "error: $slow_disk can't be loaded before the C library" >&2
  exit 2
fi
core=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
loops=()
for _ in 1 2 3 4; do
  taskset -c "$core" bash -c 'while :; do :; done' &
  loops+=($!)
done
trap 'kill "${loops[@]}" 2>/dev/null; rm -f "$preload"' EXIT
# Four tests share the core with the loops, so each has an eighth of it; meson's timeouts assume a
# whole core.
LD_PRELOAD=$preload taskset -c "$core" \
  meson test -C "$folder" --no-rebuild --num-processes 4 --timeout-multiplier 30 --print-errorlogs --logbase loaded "$@" 2>&1 |
  grep -v '^ninja:'
exit "${PIPESTATUS[0]}"
