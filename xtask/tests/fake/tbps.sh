#!/bin/sh
# Stands in for `tbps` in the tests of `cargo xtask ablate`: keeps its promises about files, exit
# status, interruption and standard input, and trains nothing. Steered by environment variables:
#   FAKE_CALLS   file that every command line is added to
#   FAKE_STEP_S  seconds per step
#   FAKE_FAIL    name of the run that ends with status oom
#   FAKE_ABORT   name of the run that the system refuses memory
#   FAKE_DEAF    if set, a training goes on when its standard input ends
set -eu
echo "$*" >>"$FAKE_CALLS"

last_argument() { for argument; do :; done; printf '%s' "$argument"; }

case "$1 $2" in
"data synth")
    data=$(last_argument "$@")
    mkdir -p "$data/imgs"
    echo '[]' >"$data/reid_raw.json"
    exit 0 ;;
"data check") exit 0 ;;
"record-oom --run")
    echo '{"status": "oom"}' >"$3/summary.json"
    exit 0 ;;
"report "*)
    printf '# Report\n\n| cell | R@1 |\n| --- | --- |\n| fp32 | 1.0 |\n' >"$2/report.md"
    echo '<html></html>' >"$2/report.html"
    exit 0 ;;
esac

# train: dies with its parent, and ends after the running step when interrupted.
test "$TBPS_DIE_WITH_STDIN" = 1
exec 3<&0 # a shell gives its background jobs /dev/null as descriptor 0
(cat >/dev/null; test -n "${FAKE_DEAF:-}" || kill -KILL $$) <&3 >/dev/null 2>&1 &
watcher=$!
interrupted=no
trap 'interrupted=yes' INT

out= resume=no
while test $# -gt 0; do
    case "$1" in
    --out) out=$2 ;;
    --resume) resume=yes ;;
    esac
    shift
done
name=$(basename "$out")
if test -e "$out" && { test $resume = no || test ! -e "$out/config.toml"; }; then
    echo "error: $out holds a run and --resume is not given, or holds something else" >&2
    exit 2
fi

finish() { kill $watcher 2>/dev/null || true; exit "$1"; }

mkdir -p "$out"
echo "seed = 0" >"$out/config.toml"
echo $$ >"$out/pid"
echo '{"total_steps": 4}' >"$out/run.json"
step=$(cat "$out/checkpoint" 2>/dev/null || echo 0)
echo "training $name from step $step"
if test "$name" = "${FAKE_FAIL:-}"; then
    echo 'error: the device is out of memory; use recompute="block"' >&2
    echo '{"status": "oom"}' >"$out/summary.json"
    finish 1
fi
if test "$name" = "${FAKE_ABORT:-}"; then
    echo 'memory allocation of 9663676416 bytes failed' >&2
    kill $watcher 2>/dev/null || true
    kill -ABRT $$
fi
while test "$step" -lt 4; do
    step=$((step + 1))
    sleep "$FAKE_STEP_S"
    echo "{\"kind\":\"step\",\"step\":$step,\"loss\":0.5}" >>"$out/metrics.jsonl"
    echo "$step" >"$out/checkpoint"
    test $interrupted = no || finish 130
done
echo '{"status": "done"}' >"$out/summary.json.tmp"
mv "$out/summary.json.tmp" "$out/summary.json"
finish 0
