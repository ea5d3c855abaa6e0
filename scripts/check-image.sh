#!/bin/bash
# Builds the image of configs/container as a user would, but on this machine's own Debian instead of
# a registry's, checks its contents and its user, and trains a job in it.
# Usage: scripts/check-image.sh
# Root. Exit code 77: this machine can't build one, with the reason. build-image keeps the slow
# parts for the next time: the Debian and the compiler's cache. Twenty minutes at first, on two
# cores.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "error: $*" >&2; exit 1; }
command -v buildah >/dev/null || skip "there is no buildah: scripts/install-deps.sh --packages installs it"
command -v unshare >/dev/null || skip "there is no unshare (util-linux)"
folder=$PWD/build-image
scripts/debian-base.sh "$folder/debian.tar" ca-certificates || exit $?

# Images and containers are this test's own, and need neither a runtime nor a file system in layers.
store=$(mktemp -d "$folder/store.XXXXXX")
trap 'rm -rf --one-file-system "$store" "$folder/context"' EXIT
export TMPDIR=$folder/tmp BUILDAH_ISOLATION=chroot  # the cache of `RUN --mount` is in TMPDIR
mkdir -p "$TMPDIR"
image() { buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }
of_image() { image inspect --type image --format "{{$1}}" dtf:check; }

from=$(sed -n 's/^ARG DEBIAN=//p' configs/container/Containerfile)
[ -n "$from" ] || fail "the Containerfile doesn't say which Debian it is built on"
bare=$(image from scratch) || skip "buildah makes no container here"
image add --quiet "$bare" "$folder/debian.tar" / >/dev/null
image commit --quiet "$bare" "docker.io/library/$from" >/dev/null
image rm "$bare" >/dev/null
image run "$(image from --pull-never "$from")" -- true 2>"$store/why" || skip "buildah runs nothing here: $(tail -1 "$store/why")"

echo "== build"
mkdir -p "$folder/context"  # the files of a checkout, without build results
git ls-files --cached --others --exclude-standard -z | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar xf - -C "$folder/context"
image bud --pull-never --file configs/container/Containerfile --tag dtf:check "$folder/context" >"$folder/build.log" 2>&1 ||
  { tail -30 "$folder/build.log" >&2; fail "the image can't be built: $folder/build.log"; }

echo "== contents"
[ "$(of_image .OCIv1.Config.User)" = 10001:10001 ] || fail "it runs as $(of_image .OCIv1.Config.User)"
[ "$(of_image .OCIv1.Config.WorkingDir)" = /var/lib/dtf ] || fail "it starts in $(of_image .OCIv1.Config.WorkingDir)"
[ "$(of_image .OCIv1.Config.Cmd)" = "[dtf-launch --help]" ] || fail "it runs $(of_image .OCIv1.Config.Cmd)"
[ "$(of_image .OCIv1.Config.Entrypoint)" = "[]" ] || fail "it has an entry point: it runs other commands than the given ones"
container=$(image from --pull-never dtf:check)
within() { image run "$container" -- "$@"; }
[ "$(within id -u):$(within id -g)" = 10001:10001 ] || fail "in it one is $(within id)"
for program in psd workerd dtf-launch dtf-agent; do within "$program" --version; done
within dtf-launch --help >"$store/help"
grep -q '^dtf-launch' "$store/help" || fail "its default command prints: $(head -1 "$store/help")"
# Prints the output of `sh -c "$1"` in the image, which ends with a word of its own: it
# distinguishes an empty result from a command that didn't run.
finds_nothing() {
  local found
  found=$(within sh -c "$1; echo looked" 2>"$store/why") || fail "nothing runs in it: $(tail -1 "$store/why")"
  [ "$found" = looked ] || { echo "$found" >&2; return 1; }
}
within sh -c 'ldd /usr/local/bin/psd >/dev/null' || fail "ldd doesn't run in it"
finds_nothing 'ldd /usr/local/bin/* | grep "not found"' || fail "libraries are missing"
finds_nothing 'for name in g++ gcc cc meson; do command -v $name; done' || fail "a compiler is in it"
finds_nothing 'for file in /usr/local/bin/x /etc/x; do touch $file && echo $file; done' || fail "its user may change the programs"
root=$(image mount "$container")
left=$(find "$root/var/lib/apt/lists" "$root/tmp" -mindepth 1)
[ -z "$left" ] || fail "it contains build files: $left"
base_mib=$(du -sm --one-file-system "$(image mount "$(image from --pull-never "$from")")" | cut -f1)
whole_mib=$(du -sm --one-file-system "$root" | cut -f1)
echo "$whole_mib MiB, $base_mib MiB of them Debian"
added_max=150
[ $((whole_mib - base_mib)) -le $added_max ] || fail "dtf and its libraries have more than $added_max MiB"

echo "== a job"
# In a separate network: the example's ports may be in use.
export -f image within
export store container
unshare --net bash -euc 'ip link set lo up
  within dtf-launch /usr/local/share/dtf/clusters/local.yaml --set train.steps=50 --set "train.checkpoint={every_steps: 25}" --quiet
  within dtf-launch eval /usr/local/share/dtf/clusters/local.yaml --json' >"$store/said" ||
  { cat "$store/said" >&2; fail "the job of the examples doesn't run in it"; }
cat "$store/said"
[ "$(stat -c %u "$root"/var/lib/dtf/runs/*/summary.json)" = 10001 ] || fail "the job's files don't belong to the user"
echo "ok"
