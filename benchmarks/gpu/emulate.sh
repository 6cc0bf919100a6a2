#!/usr/bin/env bash
# Runs tbps with a GPU's kernels compiled for the CPU, which needs no GPU: see README.md.
#   emulate.sh [ARGUMENTS OF tbps]      by default `doctor --short --device cube-cpu`
# The device is `cube-cpu`. The build needs LLVM 23, as the one for CUDA does.
set -euo pipefail

from=$PWD
cd "$(dirname "$0")/../.."
target=$(cargo metadata --no-deps --format-version 1 | grep -o '"target_directory":"[^"]*"' | cut -d'"' -f4)
work=$target/cube-cpu
mkdir -p "$work"

# Of burn's two ways to choose a kernel for matrix products, one tunes, which found no end where a
# group of threads shared two cores, and the other wants more cache than a core may have. A third, its
# plainest kernel, has to be put in their place.
crate=$(cargo metadata --all-features --locked --format-version 1 |
    grep -o '"[^"]*/burn-cubecl-[0-9.]*/Cargo.toml"' | head -n 1 | tr -d '"' | xargs -r dirname) || true
test -n "$crate" || { echo "error: cargo metadata names no burn-cubecl from a registry" >&2; exit 1; }
patched=$work/$(basename "$crate")
if ! test -d "$patched"; then
    copy=$work/copy
    rm -rf "$copy"
    cp -r "$crate" "$copy"
    chosen=$copy/src/kernel/matmul/base.rs
    sed -i 's/launch_matmul(&Strategy::default(),/launch_matmul_naive(\&cubek::matmul::multi_level::Strategy::Naive,/' "$chosen"
    grep -q 'Naive, lhs, rhs, out_launch' "$chosen" ||
        { echo "error: $crate is not the burn-cubecl that this script knows" >&2; exit 1; }
    sed -i '1i #![allow(warnings)]' "$copy/src/lib.rs" # a folder is linted, a crate is not
    mv "$copy" "$patched"
fi

# Cargo writes down that the crate is another one; that is for this build only.
cp Cargo.lock "$work/Cargo.lock"
trap 'cp "$work/Cargo.lock" Cargo.lock' EXIT
cargo build --release --package tbps --features cube-cpu \
    --config "patch.crates-io.burn-cubecl.path='$patched'"
cp "$target/release/tbps" "$work/tbps"
cp "$work/Cargo.lock" Cargo.lock
trap - EXIT

cd "$from"
if test $# = 0; then set -- doctor --short --device cube-cpu; fi
exec "$work/tbps" "$@"
