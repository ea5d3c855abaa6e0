#!/bin/sh
# Downloads the MNIST database (four .gz files, 11 MB) into a folder and verifies it against the
# original.
set -eu

usage() {
  cat <<'EOF'
usage: fetch-mnist.sh [--from DIR] [FOLDER]

Downloads the four MNIST files from a public mirror into FOLDER (default: data/mnist beside this script's folder) and
compares their MD5 sums, taken of the unpacked bytes, with those of the original. Files that are there already and are
right are kept. With --from they are copied from DIR instead of downloaded.

Exit codes: 0 all four files are there and right; 2 usage; 65 a file is not the original; 69 no mirror answered;
73 the folder cannot be written.
EOF
}

mirrors="https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist"
# MD5 of the unpacked file, then its name.
files="6bbc9ace898e44ae57da46a324031adb train-images-idx3-ubyte
a25bea736e30d166cdddb491f175f624 train-labels-idx1-ubyte
2646ac647ad5339dbf082846283269ea t10k-images-idx3-ubyte
27ae3e4e09519cfbb04c329615203637 t10k-labels-idx1-ubyte"

from=
folder=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --from)
      [ $# -ge 2 ] || { usage >&2; exit 2; }
      from=$2
      shift
      ;;
    -*)
      echo "fetch-mnist.sh: unknown option '$1'" >&2
      usage >&2
      exit 2
      ;;
    *)
      [ -z "$folder" ] || { usage >&2; exit 2; }
      folder=$1
      ;;
  esac
  shift
done
[ -n "$folder" ] || folder=$(dirname "$0")/../data/mnist

say() { echo "fetch-mnist: $*" >&2; }

# Prints the md5 of the unpacked bytes of $1; nothing if it is no gzip file.
unpacked_md5() {
  gzip -t "$1" 2>/dev/null || return 0
  if command -v md5sum >/dev/null 2>&1; then gzip -dc "$1" | md5sum | cut -d' ' -f1; else gzip -dc "$1" | md5 -q; fi
}

# Downloads $1 to the file $2.
download() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --connect-timeout 10 --max-time 300 --retry 2 -o "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q --timeout=10 --tries=3 -O "$2" "$1"
  else
    say "neither curl nor wget is installed"
    exit 69
  fi
}

# Fetches $1.gz to the file $2 and compares its MD5 with $3. Returns 69 without a file, 65 for a
# wrong one.
bring() {
  status=69
  if [ -n "$from" ]; then set -- "$1" "$2" "$3" "$from"; else eval "set -- \"\$1\" \"\$2\" \"\$3\" $mirrors"; fi
  name=$1 to=$2 want=$3
  shift 3
  for source; do
    if [ -n "$from" ]; then cp "$source/$name.gz" "$to" || continue; else download "$source/$name.gz" "$to" || { say "$source/$name.gz: no answer"; continue; }; fi
    got=$(unpacked_md5 "$to")
    [ "$got" != "$want" ] || return 0
    say "$source/$name.gz: not the original: expected MD5 $want of the unpacked file, found ${got:-no gzip file}"
    status=65
  done
  return $status
}

mkdir -p "$folder" || exit 73
part=$folder/.part.$$
: >"$part" || exit 73
trap 'rm -f "$part"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "$files" | while read -r md5 name; do
  target=$folder/$name.gz
  if [ -f "$target" ] && [ "$(unpacked_md5 "$target")" = "$md5" ]; then
    say "$name.gz: already there"
    continue
  fi
  code=0
  bring "$name" "$part" "$md5" || code=$?
  if [ $code -ne 0 ]; then
    say "$name.gz could not be had; download it by hand into $folder, or try again"
    exit $code
  fi
  mv "$part" "$target" || exit 73
  say "$name.gz: verified"
done
say "all four files are in $folder"
