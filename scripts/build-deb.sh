#!/bin/bash
# Builds dtf's packages for Debian 12 and checks them with lintian; its errors and warnings fail.
# Usage: scripts/build-deb.sh [FOLDER]      where the packages go; default: build-deb/packages
# Requires scripts/install-deps.sh --packages besides dtf's own build dependencies. With nvcc,
# dtf-gpu is built too.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=${1:-build-deb/packages}
mkdir -p "$packages"
packages=$(cd "$packages" && pwd)
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
[ "$(dpkg-parsechangelog -l configs/debian/changelog -S Version)" = "$version" ] ||
  { echo "configs/debian/changelog:1: error: not the version of meson.build, $version" >&2; exit 1; }

# A copy, always at the same place, so that ccache finds earlier results.
source=build-deb/dtf-$version
rm -rf "$source" && mkdir -p "$source"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar xf - -C "$source"
else
  tar cf - --exclude='./build*' . | tar xf - -C "$source"
fi
cp -r configs/debian "$source/debian"

profiles=
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then profiles=pkg.dtf.gpu; fi
echo "== packages of dtf $version${profiles:+, dtf-gpu too}"
(
  cd "$source"
  export CC=gcc CXX=g++ DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)" DEB_BUILD_PROFILES=$profiles PATH=$PATH:/usr/local/cuda/bin
  if command -v ccache >/dev/null; then export CC='ccache gcc' CXX='ccache g++' NVCC='ccache nvcc' CCACHE_SLOPPINESS=pch_defines,time_macros; fi
  dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo >../build.log 2>&1 || { tail -40 ../build.log >&2; exit 1; }
)
rm -f "$packages"/*.deb
mv build-deb/*.deb "$packages/"
# The maintainers have no mail address.
lintian --fail-on error,warning --suppress-tags bogus-mail-host "$packages"/*.deb
ls -l "$packages"/*.deb | awk '{print $5, $9}'
