//! `tbps bench`: what `cargo xtask bench` relies on, on the smoke preset's model.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::io::Write;
use std::process::{Output, Stdio};
use support::{smoke_config, tbps};

/// Runs a case and gives it so many lines.
fn bench(args: &[&str], num_lines: usize) -> Output {
    let mut command = tbps();
    command.arg("bench").arg("--config").arg(smoke_config()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all("\n".repeat(num_lines).as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The JSON lines of a case that succeeds.
fn lines(args: &[&str], num_lines: usize) -> Vec<Value> {
    let output = bench(args, num_lines);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_line_is_answered_by_a_piece_of_work_and_the_end_by_what_was_held() {
    let amp = ["--set", "precision=\"amp-bf16\""];
    let train = lines(&[&["--work", "train", "--caption-length", "12"], &amp[..]].concat(), 3);
    assert_eq!(train.len(), 5);
    assert_eq!(train[0]["compute_dtype"], serde_json::json!(["bf16"]));
    assert!(train[1..4].iter().all(|piece| piece["seconds"].as_f64().unwrap() > 0.0));
    let done = &train[4];
    assert!(done["loss"].as_f64().unwrap() > 0.0);
    assert!(done["tape_bytes"].as_u64().unwrap() > 0);
    assert!(done["peak_alloc_gib"].as_f64().unwrap() > 0.0);
    assert_eq!(done["skipped_steps"], 0);
    // The CPU's f32 products are exact where f32 is: the probe says so.
    assert_eq!(done["tf32"], false);

    let encode = lines(&["--work", "encode"], 1);
    assert_eq!(encode.len(), 3);
    assert_eq!((&encode[2]["loss"], &encode[2]["tape_bytes"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_caption_that_the_model_has_no_room_for_is_refused() {
    let output = bench(&["--work", "train", "--caption-length", "49"], 0);
    assert_eq!(output.status.code(), Some(2));
    let line = support::error_line(&output);
    assert_eq!(line, "--caption-length 49: expected 2 to 48, the model's");
}
