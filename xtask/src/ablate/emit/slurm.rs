//! A job array of Slurm: a task per shard.

use std::time::Duration;

use super::Work;
use crate::ablate::command::quote;

/// For the last cell to save what it has when the time is over.
const GRACE: Duration = Duration::from_secs(300);

/// The batch script.
pub(super) fn script(work: &Work<'_>) -> String {
    let (name, num_shards) = (work.name(), work.num_shards);
    let mut directives = vec![
        format!("--job-name={name}"),
        format!("--array=1-{num_shards}"),
        format!("--output={name}-%A-%a.log"),
        "--open-mode=append".to_owned(),
        "--requeue".to_owned(),
        format!("--signal=B:TERM@{}", GRACE.as_secs()),
    ];
    if work.on_gpu() {
        directives.push("--gres=gpu:1".to_owned());
    }
    directives.extend(work.max_time.map(|time| {
        let minutes = (time + 2 * GRACE).as_secs().div_ceil(60);
        format!("--time={minutes}")
    }));
    let directives: Vec<String> =
        directives.iter().map(|directive| format!("#SBATCH {directive}\n")).collect();
    TEMPLATE
        .replace("{directives}", &directives.concat())
        .replace("{root}", &quote(work.plan.root.as_os_str()))
        .replace("{build}", &work.build())
        .replace("{report}", &work.report())
        .replace("{ablate}", &work.ablate(&format!("\"$SLURM_ARRAY_TASK_ID/{num_shards}\"")))
}

const TEMPLATE: &str = r#"#!/usr/bin/env bash
{directives}#
# A shard of the matrix per task, all into one directory, which must be on a shared file system.
# Once before: {build}
# Submit:      sbatch THIS_FILE
# Afterwards:  {report}
#
# A task that is told to end, or has had its --max-time, saves and is queued again. Times are
# comparable only where no other job shares a cell's node and card.
set -euo pipefail
cd {root}

{ablate} &
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
"#;
