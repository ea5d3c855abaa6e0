#!/bin/bash
# Fetches an OpenSSL that is newer than the distribution's, to measure TLS with it, and prints
# its folder. Debian 12's 3.0 encrypts AES-GCM with 128-bit instructions; 3.1 and later use 512-bit
# ones if the processor has them. The library comes from a Python package that contains one
# (psycopg2-binary): for measurements, not for jobs, since it gets no security updates.
# Without a network it prints the reason and exits 69.
# Usage: scripts/newer-openssl.sh [FOLDER]                           default: build/newer-openssl
#   lib=$(scripts/newer-openssl.sh) && LD_LIBRARY_PATH=$lib build/tests/bench/dtf-bench tls
#   The table names the OpenSSL.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
case ${1:-} in
  -h | --help) sed -n '2,8s/^# //p' scripts/newer-openssl.sh; exit ;;
  -*) echo "error: there is no option $1; see scripts/newer-openssl.sh --help" >&2; exit 2 ;;
esac
folder=$(realpath -m -- "${1:-build/newer-openssl}") || exit 2
python=$folder/python
if [ ! -e "$folder/libssl.so.3" ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { python3 -m venv "$python" && "$python/bin/python" -m pip install --disable-pip-version-check --quiet --timeout 20 \
    --retries 1 --only-binary :all: psycopg2-binary; } >"$log" 2>&1; then
    echo "error: no package with a newer OpenSSL: $(tail -1 "$log")" >&2
    exit 69
  fi
  for name in libcrypto libssl; do
    library=$(find "$python" -name "$name-*.so.3" | head -1)
    [ -n "$library" ] || { echo "error: psycopg2-binary carries no $name.so.3 any more" >&2; exit 69; }
    cp "$library" "$folder/" && ln -sf "$(basename "$library")" "$folder/$name.so.3" || exit 73
  done
fi
echo "$folder"
