#!/bin/bash
# Power cuts on a real file system: a process saves checkpoints on ext4 in a loop-mounted image; the
# image is copied at random moments, as a power cut would leave the disk; every copy is mounted and
# must show whole checkpoints only, the newest no older than the last one that the process had
# called committed before. The copy must be of one moment: the image lies on btrfs, where a reflink
# copy is (writes wait for it).
# The mounts are in a namespace of the test's own: a process elsewhere that copies the namespace of
# its parent would hold a loop device open behind its umount. Each copy is a file of its own,
# because mount(8) takes a loop device again that still shows the same file, with its cache.
# Usage: checkpoint_power_test.sh CHECKPOINT_TOOL [COPIES]    exit 77: skipped, with the reason
set -uo pipefail
tool=$(realpath "$1")
copies=${2:-${DTF_POWER_CUTS:-20}}
seed=${DTF_TEST_SEED:-$$}
RANDOM=$seed
skip() { echo "SKIPPED: $1" >&2; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "mounting needs root"
if [ -z "${DTF_POWER_NAMESPACE:-}" ]; then
  unshare --mount true 2>/dev/null || skip "no mount namespaces for this user"
  DTF_POWER_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4 (package e2fsprogs)"
command -v mkfs.btrfs >/dev/null || skip "no mkfs.btrfs (package btrfs-progs)"

work=$(mktemp -d)
writer=
cleanup() {
  [ -n "$writer" ] && kill -9 "$writer" 2>/dev/null && wait "$writer" 2>/dev/null
  for at in copy disk host; do mountpoint -q "$work/$at" && umount "$work/$at"; done
  rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work"/{host,disk,copy}
truncate -s 1G "$work/host.img"
mkfs.btrfs -q "$work/host.img" || skip "mkfs.btrfs failed"
mount -o loop "$work/host.img" "$work/host" 2>"$work/why" || skip "cannot mount btrfs by loop: $(cat "$work/why")"
truncate -s 48M "$work/host/ext4.img"
mkfs.ext4 -q "$work/host/ext4.img" || skip "mkfs.ext4 failed"
mount -o loop "$work/host/ext4.img" "$work/disk" 2>"$work/why" || skip "cannot mount ext4 by loop: $(cat "$work/why")"

echo "seed $seed (DTF_TEST_SEED), $copies copies"
"$tool" loop "$work/disk/checkpoints" >"$work/log" 2>"$work/errors" &
writer=$!
bad=0
newest=0
for i in $(seq "$copies"); do
  sleep "0.$(printf %03d $((RANDOM % 400)))"
  kill -0 "$writer" 2>/dev/null || { echo "error: the writer ended: $(cat "$work/errors")" >&2; exit 1; }
  promised=$(awk '/^committed/ { step = $2 } END { print step + 0 }' "$work/log")
  image=$work/host/copy$i.img
  cp --reflink=always "$work/host/ext4.img" "$image" || { echo "error: no reflink copy" >&2; exit 1; }
  if ! mount -o loop "$image" "$work/copy"; then
    echo "copy $i: cannot be mounted"
    bad=$((bad + 1))
    continue
  fi
  if ! said=$("$tool" verify "$work/copy/checkpoints" "$promised"); then
    echo "copy $i: promised step $promised: $said"
    bad=$((bad + 1))
  fi
  left=$(find "$work/copy/checkpoints" -maxdepth 1 -name '*.t*' | wc -l)
  half=$((${half:-0} + (left > 0)))
  newest=$promised
  umount "$work/copy"
  rm "$image"
done
echo "$copies power cuts, $bad bad; $newest checkpoints committed meanwhile; $half copies held a half-written or half-removed one"
[ "$newest" -gt 1 ] || { echo "error: the writer committed nothing" >&2; exit 1; }
[ "$bad" -eq 0 ]
