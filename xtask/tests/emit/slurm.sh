#!/usr/bin/env bash
#SBATCH --job-name=tbps-demo
#SBATCH --array=1-4
#SBATCH --output=tbps-demo-%A-%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@300
#SBATCH --gres=gpu:1
#SBATCH --time=700
#
# A shard of the matrix per task, all into one directory, which must be on a shared file system.
# Once before: cargo build --release --package tbps --features cuda
# Submit:      sbatch THIS_FILE
# Afterwards:  target/release/tbps report /workspace/runs/demo
#
# A task that is told to end, or has had its --max-time, saves and is queued again. Times are
# comparable only where no other job shares a cell's node and card.
set -euo pipefail
cd /workspace

cargo xtask ablate --preset demo --seeds 2 --device cuda --out /workspace/runs/demo --set train.epochs=3 --max-time 11.5 --shard "$SLURM_ARRAY_TASK_ID/4" &
child=$!
trap 'kill -TERM "$child"' TERM

# A signal that is passed on ends a wait early; the last one has the child's status.
while true; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
done

# 130: stopped, and resumable.
if test "$status" -eq 130; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
