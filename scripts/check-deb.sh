#!/bin/bash
# Installs dtf's packages in a Debian 12 without anything else, runs a job there, and removes them
# again.
# Usage: scripts/check-deb.sh [FOLDER]
#   FOLDER: where the packages are; default: build-deb/packages (scripts/build-deb.sh)
# Root. Exit code 77: this machine can't make such a system, with the reason. The system is made
# once, in build-deb/debian.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(cd "${1:-build-deb/packages}" && pwd)
skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "error: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "not root: a system in a folder takes chroot"

base=build-deb/debian.tar
scripts/debian-base.sh "$base" systemd,ca-certificates || exit $?
system=$(mktemp -d)
cleanup() {
  umount "$system/proc" 2>/dev/null || true
  umount "$system/dev/shm" 2>/dev/null || true
  rm -rf --one-file-system "$system"
}
trap cleanup EXIT
tar xf "$base" -C "$system"
mount -t proc proc "$system/proc"
mkdir -p "$system/dev/shm" && mount -t tmpfs tmpfs "$system/dev/shm"
cp /etc/resolv.conf "$system/etc/" 2>/dev/null || true
within() { chroot "$system" /usr/bin/env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }

# All files except a package manager's own.
files() { (cd "$system" && find etc usr lib var bin sbin -xdev ! -path 'var/lib/dpkg/*' ! -path 'var/lib/apt/*' ! -path 'var/cache/*' ! -path 'var/log/*' ! -name '__pycache__' | sort); }

within apt-get update -qq
mkdir "$system/packages"
cp "$packages"/*.deb "$system/packages/"
# Dependencies stay when dtf is removed: they are installed before the list of files is taken.
within sh -c 'apt-get install -qq --no-install-recommends --simulate /packages/*.deb' >"$system/log" 2>&1 || { tail -20 "$system/log" >&2; fail "a dependency isn't available"; }
mapfile -t others < <(sed -n 's/^Inst \([^ ]*\) .*/\1/p' "$system/log" | grep -vE '^(lib)?dtf')
[ ${#others[@]} -eq 0 ] || within apt-get install -qq --no-install-recommends "${others[@]}" >"$system/log" 2>&1 ||
  { tail -20 "$system/log" >&2; fail "the dependencies can't be installed"; }
files >"$system/before"
echo "== install"
within sh -c 'apt-get install -qq --no-install-recommends /packages/*.deb' >"$system/log" 2>&1 || { tail -20 "$system/log" >&2; fail "the packages can't be installed"; }
for program in psd workerd dtf-launch dtf-agent; do within "$program" --version; done
within getent passwd dtf >/dev/null || fail "there is no user dtf"
for unit in dtf-psd@.service dtf-workerd@.service dtf.target; do
  state=$(within systemctl is-enabled "$unit" || true)
  [ "$state" = disabled ] || fail "$unit is ${state:-unknown} once it was installed, not disabled"
done
[ -z "$(find "$system/etc/systemd/system" -name 'dtf*')" ] || fail "a unit of dtf is enabled"
grep -q '^Libs: .*-ldtf' "$system"/usr/lib/*/pkgconfig/dtf.pc || fail "dtf.pc doesn't name libdtf"
[ -f "$system/usr/share/dtf/systemd/dtf-psd@.service.d/keys.conf" ] || fail "the drop-in for keys is missing"
[ -f "$system/usr/share/dtf/kubernetes/kustomization.yaml" ] || fail "the manifests for Kubernetes are missing"
for file in README.md launcher/USING.md configs/clusters/local.yaml; do
  [ -f "$system/usr/share/doc/dtf-launch/$file" ] || fail "the documentation's $file is missing"
done
for file in bash-completion/completions/dtf-launch zsh/vendor-completions/_dtf-launch fish/vendor_completions.d/psd.fish; do
  [ -s "$system/usr/share/$file" ] || fail "the completions $file are missing"
done

echo "== a job"
within ip link set lo up 2>/dev/null || true
within sh -c 'cd /root && dtf-launch /usr/share/dtf/clusters/local.yaml --set train.steps=50 --run-dir /root/run --quiet' ||
  fail "the job of the examples doesn't run with the installed packages"

echo "== install once more, remove, purge"
within sh -c 'dpkg -i /packages/*.deb' >"$system/log" 2>&1 || { tail -20 "$system/log" >&2; fail "they can't be installed over themselves"; }
touch "$system/etc/dtf/cluster.yaml" "$system/var/lib/dtf/trained"
within sh -c 'apt-get remove -qq "dtf-*" "libdtf*"' >"$system/log" 2>&1 || { tail -20 "$system/log" >&2; fail "they can't be removed"; }
[ -f "$system/etc/dtf/cluster.yaml" ] || fail "the host's own cluster file was removed"
rm -r "$system/etc/dtf/cluster.yaml"
within sh -c 'cd /packages && for file in *.deb; do dpkg --purge "${file%%_*}"; done' >"$system/log" 2>&1 || { tail -20 "$system/log" >&2; fail "they can't be purged"; }
[ -f "$system/var/lib/dtf/trained" ] || fail "the trained model was purged"
rm -rf "$system/root/run" "$system/var/lib/dtf" "$system/etc/dtf"
files >"$system/after"
# The user stays, as Debian requires: its files may stay, too.
left=$(comm -13 "$system/before" "$system/after" | grep -vE '^etc/(passwd|group|shadow|gshadow)-?$' || true)
[ -z "$left" ] || fail "left behind: $left"
echo "ok"
