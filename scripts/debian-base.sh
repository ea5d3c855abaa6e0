#!/bin/bash
# Makes a bare Debian 12, as a tar file, from this machine's own mirror; keeps an existing file.
# Usage: scripts/debian-base.sh FILE.tar PACKAGE[,PACKAGE...]
#   PACKAGE: its packages beside the smallest Debian
# Root. Exit code 77: this machine can't make one, with the reason in the last line.
set -euo pipefail
base=$1
[ ! -f "$base" ] || exit 0
skip() { echo "SKIPPED: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "not root: a system in a folder takes chroot"
command -v debootstrap >/dev/null || skip "there is no debootstrap: scripts/install-deps.sh --packages installs it"
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null | grep -E '/debian/?( |$)' | sed -nE 's/^(deb|URIs:) (\[[^]]*\] )?(https?:[^ ]+).*/\3/p' | sed -n 1p || true)
[ -n "$mirror" ] || skip "no mirror of Debian is in /etc/apt"
mkdir -p "$(dirname "$base")"
log=$(dirname "$base")/debootstrap.log
new=$(mktemp -d)
trap 'rm -rf --one-file-system "$new"' EXIT
debootstrap --variant=minbase --include="$2" bookworm "$new" "$mirror" >"$log" 2>&1 || skip "debootstrap failed: $(tail -1 "$log")"
apt-config dump | grep -E '^Acquire::https?::' >"$new/etc/apt/apt.conf.d/50mirror" || true  # how this machine reaches its mirror
echo '127.0.0.1 localhost' >"$new/etc/hosts"
tar cf "$base.new" -C "$new" . && mv "$base.new" "$base"
