#!/bin/bash
# Checks that installed programs have no failpoints: neither by default nor by mistake.
# Usage: scripts/check-install.sh FOLDER_WITH_TESTS [--whole]
#   --whole: builds and installs the programs, not only the libraries with failpoints, and
#            builds the examples with the installed files
set -euo pipefail
cd "$(dirname "$0")/.."
with_tests=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# expect_none FILE_OR_FOLDER...: they contain no name of a failpoint, nor the variable that sets
# them.
expect_none() {
  local found
  if found=$(grep -rlaE --include='*.o' --include=psd --include=workerd --include=dtf-launch --include=dtf-agent '(checkpoint|stay|training|recovery|gather|ending|supervisor|session|serving|replicas)\.(after|in|before|between|ps_has)_[a-z]+|DTF_FAILPOINTS' "$@"); then
    echo "error: failpoints are in $found" >&2
    return 1
  fi
}

libraries=(common/base/libbase.a common/checkpoint/libcheckpoint.a common/train/libtrain.a)  # beside thin archives lie their objects
# A search that never finds anything would prove nothing.
if expect_none "$with_tests/common/base" "$with_tests/common/checkpoint" "$with_tests/common/train" 2>/dev/null; then
  echo "error: this check doesn't find the failpoints of $with_tests" >&2
  exit 1
fi
if DESTDIR=$place meson install -C "$with_tests" --no-rebuild >"$place/log" 2>&1; then
  echo "error: $with_tests has failpoints, and was installed" >&2
  exit 1
fi
grep 'failpoints' "$place/log"

plain=build-install
if [ "${2:-}" != --whole ]; then
  scripts/build.sh --unity "$plain" -- "${libraries[@]}"
  expect_none "$plain/common/base" "$plain/common/checkpoint" "$plain/common/train"
  exit
fi
scripts/build.sh --unity "$plain" -Dsystemd=true
DESTDIR=$place/installed meson install -C "$plain" --no-rebuild >"$place/log"
mapfile -t programs < <(find "$place/installed" -name psd -o -name workerd -o -name dtf-launch -o -name dtf-agent)
[ ${#programs[@]} -eq 3 ] || { echo "error: not three programs were installed: ${programs[*]}" >&2; exit 1; }
expect_none "${programs[@]}"

# Checks systemd's folders below /usr and /usr/local; units name the programs at their final places.
prefix=$(meson introspect "$plain" --buildoptions | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
for unit in systemd/system/dtf-psd@.service systemd/system/dtf-workerd@.service systemd/system/dtf.target sysusers.d/dtf.conf; do
  [ -f "$place/installed$prefix/lib/$unit" ] || { echo "error: $unit was not installed" >&2; exit 1; }
done
for file in clusters/local.yaml jobs/digits_softmax.yaml grafana/dtf.json kubernetes/kustomization.yaml container/Containerfile; do
  [ -f "$place/installed$prefix/share/dtf/$file" ] || { echo "error: share/dtf/$file was not installed" >&2; exit 1; }
done
for file in README.md launcher/USING.md configs/README.md configs/clusters/local.yaml; do
  [ -f "$place/installed$prefix/share/doc/dtf/$file" ] || { echo "error: share/doc/dtf/$file was not installed" >&2; exit 1; }
done
for file in bash-completion/completions/psd zsh/site-functions/_dtf-launch fish/vendor_completions.d/workerd.fish; do
  [ -s "$place/installed$prefix/share/$file" ] || { echo "error: share/$file was not installed" >&2; exit 1; }
done
for unit in "$place/installed$prefix"/lib/systemd/system/*.service; do
  program=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
  [ -x "$place/installed$program" ] || { echo "error: $unit starts $program, which was not installed" >&2; exit 1; }
done

[ -n "$(find "$place/installed$prefix" -path '*-packages/dtf/__init__.py')" ] || { echo "error: the package for Python was not installed" >&2; exit 1; }

# Programs need nothing but the installed files.
export PKG_CONFIG_PATH=$(dirname "$(find "$place/installed" -name dtf.pc)") PKG_CONFIG_SYSROOT_DIR=$place/installed
meson setup "$place/examples" common/api/examples >>"$place/log"
ninja -C "$place/examples" >>"$place/log"
library=$(dirname "$(find "$place/installed" -name libdtf.so)")
status=0
LD_LIBRARY_PATH=$library "$place/examples/remote_counter" >>"$place/log" 2>&1 || status=$?
[ $status -eq 2 ] || { echo "error: an example that lacks its arguments ended with $status, not 2" >&2; exit 1; }
