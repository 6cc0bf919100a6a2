#!/bin/sh
# Stands in for both sides of `cargo xtask bench`: speaks the protocol and computes nothing. As `tbps`
# it is called with `bench`, as PyTorch's interpreter with the path of a script. Steered by:
#   FAKE_CALLS   file that every command line is added to
#   FAKE_DEAD    a word of the command line: such a side dies at its second piece of work
#   FAKE_UNREADY a word of the command line: such a side dies before it is ready
#   FAKE_SLOW    a word of the command line: such a side takes a minute for a piece of work
set -eu
echo "$*" >>"$FAKE_CALLS"

matches() { test -n "$1" && case " $line " in *" $1 "*) ;; *) return 1 ;; esac; }
line=$(echo "$*" | tr '"=' '  ')

if test "$1" = bench; then
    seconds=2.0
    ready='{"tbps_version":"1.2.3","git_commit":"abc","threads":2,"num_parameters":7}'
    done='{"peak_host_gib":3.0,"tape_bytes":100,"loss":1.5,"skipped_steps":0,"tf32":false}'
else
    seconds=4.0
    ready='{"versions":{"torch":"2.15.0"},"threads":2,"num_parameters":7}'
    done='{"peak_host_gib":4.0,"saved_bytes":200,"loss":1.5}'
fi

if matches "${FAKE_UNREADY:-}"; then
    echo 'Traceback (most recent call last):' >&2
    echo "ModuleNotFoundError: No module named 'torch'" >&2
    exit 1
fi
echo "$ready"
pieces=0
while read -r _; do
    pieces=$((pieces + 1))
    if matches "${FAKE_DEAD:-}" && test $pieces = 2; then
        echo 'error: the device is out of memory' >&2
        exit 1
    fi
    if matches "${FAKE_SLOW:-}"; then exec sleep 60; fi
    echo "{\"seconds\":$seconds}"
done
echo "$done"
