#!/usr/bin/env bash
# The 8-cell table of ViT-B/16 at batch 64, 384x128, on this machine's NVIDIA GPU, and PyTorch's
# beside it if it is here, within 8 minutes. What it writes and what it means: README.md.
#   ./run.sh [OPTIONS OF `xtask bench`]
# PYTHON names the interpreter that has torch (default: python3).
set -euo pipefail

limit_s=480      # of the whole script
reserve_s=15     # for looking for PyTorch and for stopping
began=$(date +%s)
here=$(cd "$(dirname "$0")" && pwd)
results=$PWD/results
for file in tbps xtask; do
    test -x "$here/$file" || { echo "error: $here/$file is missing: pack.sh puts it there" >&2; exit 2; }
done
mkdir -p "$results"

# Everything is written here; tuned kernels go to ~/.cache/cubecl.
cd "$results"
{
    date -u +%FT%TZ
    uname -srm
    nvidia-smi || echo "nvidia-smi: not there"
} >machine.txt 2>&1

# The math functions of our kernels, from a CUDA toolkit or from what travelled.
if test -z "${CUDA_PATH:-}" && test -f "$here/cuda/nvvm/libdevice/libdevice.10.bc"; then
    export CUDA_PATH=$here/cuda
fi

# Packages that travelled are used only where the machine's own do not do. A wheel is no package
# until it is unpacked: open_clip reads its vocabulary beside its code.
python=$(command -v "${PYTHON:-python3}" || true)
imports='import torch, open_clip; from timm.utils import ModelEmaV3'
try_imports() { timeout 60 "$python" -c "$imports" 2>"$results/peer_import.txt"; }
unpack_wheels() {
    compgen -G "$here/wheels/*.whl" >/dev/null || return 1
    rm -rf "$results/packages"
    mkdir "$results/packages"
    for wheel in "$here"/wheels/*.whl; do
        "$python" -m zipfile -e "$wheel" "$results/packages" || return 1
    done
    export PYTHONPATH="$results/packages${PYTHONPATH:+:$PYTHONPATH}"
}
if test -z "$python"; then
    peer=(--without-peer "no interpreter ${PYTHON:-python3} on this machine")
elif try_imports || { unpack_wheels && try_imports; }; then
    peer=(--peer --python "$python")
else
    peer=(--without-peer "$python: $(tail -n 1 "$results/peer_import.txt")")
fi
echo "PyTorch: ${peer[*]}"

left_s=$((limit_s - reserve_s - ($(date +%s) - began)))
status=0
# `timeout` is for the case that the driver itself hangs: its file is whole at any time, and what was
# not reached is recorded in it from the beginning. In the foreground, so that Ctrl-C reaches all.
timeout --foreground --kill-after=5 $((left_s + 5)) "$here/xtask" bench --binary "$here/tbps" "${peer[@]}" \
    --device cuda --batch 64 --pairs 10 --work train,encode --caption-lengths 77 \
    --max-seconds "$left_s" --json "$results/bench.json" "$@" 2>&1 | tee table.md || status=$?
echo "took $(($(date +%s) - began)) s of $limit_s; exit status $status"
exit "$status"
