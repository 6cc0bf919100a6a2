#!/usr/bin/env bash
# Packs what benchmarks/gpu/run.sh needs on a machine without Rust and network:
#   pack.sh TBPS XTASK [ALONG] OUT.tar.xz
# ALONG is a folder with wheels, or libdevice.10.bc, or both: see README.md.
# Fails when the archive is larger than 60 MiB.
set -euo pipefail

limit_mib=60
die() { echo "error: $*" >&2; exit "${code:-1}"; }
code=2
case $# in
3) tbps=$1 xtask=$2 along='' out=$3 ;;
4) tbps=$1 xtask=$2 along=$3 out=$4 ;;
*) die "usage: pack.sh TBPS XTASK [ALONG] OUT.tar.xz" ;;
esac
for binary in "$tbps" "$xtask"; do
    test -f "$binary" || die "$binary is no file: build it first, see README.md"
done
libdevice=${along:+$along/libdevice.10.bc}
test -z "$along" || compgen -G "$along/*.whl" >/dev/null || test -f "$libdevice" ||
    die "$along holds neither a wheel nor libdevice.10.bc"
code=1

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$work/tbps-gpu
mkdir "$folder"
cp "$tbps" "$folder/tbps"
cp "$xtask" "$folder/xtask"
strip "$folder/tbps" "$folder/xtask"
cp "$here/run.sh" "$here/README.md" "$folder"
if test -n "$along" && compgen -G "$along/*.whl" >/dev/null; then
    mkdir "$folder/wheels"
    cp "$along"/*.whl "$folder/wheels"
fi
if test -f "$libdevice"; then
    mkdir -p "$folder/cuda/nvvm/libdevice"
    cp "$libdevice" "$folder/cuda/nvvm/libdevice"
fi
tar --create --file "$work/archive" --use-compress-program 'xz -6 --threads=0' -C "$work" tbps-gpu

bytes=$(stat --format %s "$work/archive")
test "$bytes" -le $((limit_mib << 20)) ||
    die "the archive has $bytes bytes, more than $limit_mib MiB; leave out wheels, or more of the binary"
mv "$work/archive" "$out"
echo "$out: $((bytes >> 10)) KiB of at most $((limit_mib << 10))"
