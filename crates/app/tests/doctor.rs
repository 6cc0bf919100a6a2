//! `tbps doctor` on the device that every build has.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use support::{error_line, json, tbps};

#[test]
fn the_cpu_passes_and_every_check_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut doctor = tbps();
    doctor.args(["doctor", "--device", "flex", "--json"]).arg(folder.path().join("checks.json"));
    let output = doctor.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let checks = json(folder.path(), "checks.json");
    let checks = checks.as_array().unwrap();
    assert!(checks.iter().all(|check| check["error"].as_f64() <= check["at_most"].as_f64()));
    assert_eq!(text.matches("ok    ").count(), checks.len(), "{text}");
    assert!(text.ends_with(&format!("all {} checks passed on flex\n", checks.len())), "{text}");
    for op in ["matmul", "softmax", "attention", "recomputation", "EMA", "memory"] {
        assert!(checks.iter().any(|check| check["op"] == op), "{op} was not checked");
    }
    assert!(text.contains("GFLOP/s") && text.contains("GiB/s"), "{text}");
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let output = tbps().args(["doctor", "--device", "tpu"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error_line(&output).contains("no device"));
}
