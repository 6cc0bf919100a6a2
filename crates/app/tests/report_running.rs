//! A report on a matrix that is still running: it never fails, and says how far each run is.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use support::{json, tbps, train_command, trained};

#[test]
fn reports_can_be_made_at_any_moment_of_a_run() {
    let matrix = tempfile::tempdir().unwrap();
    let matrix = matrix.path();
    trained(matrix, "fp32.s0", &[]);
    let amp = matrix.join("amp.s0");
    let mut child = train_command(&amp, &["precision=amp-fp16"]).spawn().unwrap();
    let mut seen: Vec<String> = Vec::new();
    loop {
        let over = child.try_wait().unwrap();
        let output = tbps().arg("report").arg(matrix).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = json(matrix, "report.json");
        let run = &report["cells"][4]["runs"][0];
        let status = run["status"].as_str().unwrap().to_owned();
        let number = |key: &str| run["figures"][key]["value"].as_f64();
        if let (Some(step), Some(total)) = (number("last_step"), number("total_steps")) {
            assert!(step <= total, "{run}");
        }
        if seen.last() != Some(&status) {
            seen.push(status);
        }
        if let Some(over) = over {
            assert!(over.success());
            break;
        }
    }
    assert_eq!(seen.last().unwrap(), "done", "{seen:?}");
    assert!(seen.contains(&"unfinished".to_owned()), "{seen:?}");
    let report = json(matrix, "report.json");
    assert!(report["limits"]["num_equal_batches"].as_u64() > Some(1), "{}", report["limits"]);
}
