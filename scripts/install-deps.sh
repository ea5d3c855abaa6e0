#!/bin/bash
# Installs the packages that building (and, with --tests, checking) dtf needs on Debian 12, except
# those already installed.
# Usage: scripts/install-deps.sh [--tests] [--packages] [--browser] [--slurm]
#   --packages: for building packages for Debian and an image of containers
#   --browser:  Chromium, for the test of the status page
#   --slurm:    Slurm and munge, for the test that submits jobs
set -euo pipefail

packages=(
  g++ meson ninja-build ccache pkg-config python3
  capnproto libcapnp-dev libboost-dev libboost-system-dev libboost-program-options-dev
  libyaml-cpp-dev libssl-dev libspdlog-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libxxhash-dev libprotozero-dev libgtest-dev libgmock-dev
)
if [[ " $* " = *' --tests '* ]]; then
  packages+=(lld clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev git procps python3-venv python3-numpy python3-yaml e2fsprogs btrfs-progs systemd systemd-container libucx-dev openssh-client openssh-server openssl iproute2 nftables universal-ctags zsh fish)
fi
if [[ " $* " = *' --packages '* ]]; then packages+=(libucx-dev debhelper dpkg-dev fakeroot lintian debootstrap buildah); fi
if [[ " $* " = *' --browser '* ]]; then packages+=(chromium); fi
if [[ " $* " = *' --slurm '* ]]; then packages+=(slurmctld slurmd slurm-client munge iproute2); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "== every package that dtf needs is installed"
  exit 0
fi
echo "== installing ${#missing[@]} packages: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "error: not root, and there is no sudo: install them by hand" >&2; exit 77; }
  as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "error: apt-get could not install them; the lines above say why" >&2
  exit 69
fi
