//! An indexed Job of Kubernetes: a pod per shard.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Work;
use crate::ablate::plan::Plan;
use crate::halt::Halt;

/// Failed pods that are replaced, of each shard, before the Job is given up.
const RETRIES_PER_SHARD: u64 = 3;
/// For the running cell to save what it has when a pod is told to end.
const GRACE_S: u64 = 300;

/// The manifest, as YAML.
///
/// # Errors
/// [`Halt::Usage`] when the matrix needs files outside of the workspace, which is all that a pod sees.
pub(super) fn manifest(work: &Work<'_>, image: &str, claim: &str) -> Result<String> {
    let plan = work.plan;
    require_inside(plan)?;
    let root = plan.root.to_str().context("the workspace's path is not UTF-8; move it")?;
    let shard = format!("\"$((JOB_COMPLETION_INDEX + 1))/{}\"", work.num_shards);
    let resources = match work.on_gpu() {
        true => "\n          resources:\n            limits:\n              nvidia.com/gpu: 1",
        false => "",
    };
    Ok(TEMPLATE
        .replace("{name}", &work.name())
        .replace("{num_shards}", &work.num_shards.to_string())
        .replace("{retries}", &(RETRIES_PER_SHARD * work.num_shards).to_string())
        .replace("{grace_s}", &GRACE_S.to_string())
        .replace("{resources}", resources)
        .replace("{build}", &work.build())
        .replace("{report}", &work.report())
        .replace("{command}", &quoted(&format!("exec {}", work.ablate(&shard))))
        .replace("{image}", &quoted(image))
        .replace("{claim}", &quoted(claim))
        .replace("{root}", &quoted(root)))
}

fn require_inside(plan: &Plan) -> Result<()> {
    let paths = [
        ("--data", Some(&plan.data)),
        ("--weights", plan.weights.as_ref()),
        ("--out", Some(&plan.out)),
        ("--tbps", plan.tbps.as_ref()),
    ];
    let is_inside = |path: &Path| path.starts_with(&plan.root);
    let outside = paths
        .into_iter()
        .find_map(|(option, path)| path.filter(|path| !is_inside(path)).map(|path| (option, path)));
    match outside {
        None => Ok(()),
        Some((option, path)) => Err(Halt::usage(format!(
            "{option} {} is outside of the workspace {}, which is what the claim holds: put it there",
            path.display(),
            plan.root.display()
        ))),
    }
}

/// A JSON string is a YAML one.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

const TEMPLATE: &str = r#"# A shard of the matrix per pod, all into one directory. The claim holds this workspace, is mounted
# where it is here, and must be ReadWriteMany unless all pods run on one node.
# Once before, in the workspace: {build}
# Submit:                        kubectl apply -f THIS_FILE
# Afterwards, in the workspace:  {report}
#
# A pod that is told to end, or has had its --max-time, saves and ends with status 130, which is no
# failure: another goes on. Times are comparable only where no other pod shares a node.
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {num_shards}
  parallelism: {num_shards}
  backoffLimit: {retries}
  podFailurePolicy:
    rules:
      - action: Ignore
        onExitCodes:
          containerName: shard
          operator: In
          values: [130]
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: {grace_s}
      containers:
        - name: shard
          image: {image}
          workingDir: {root}
          command: ["bash", "-c", {command}]{resources}
          volumeMounts:
            - name: workspace
              mountPath: {root}
      volumes:
        - name: workspace
          persistentVolumeClaim:
            claimName: {claim}
"#;
