use super::*;
use crate::bench::case::cell;
use crate::bench::side::Told as Said;
use serde_json::json;

fn case(work: Work, device: &str) -> Case {
    let caption_length = (work == Work::Train).then_some(77);
    Case { work, cell: cell("amp-gc").unwrap(), caption_length, batch: 8, device: device.into() }
}

fn side(done: Value, pieces: &[f64], driver_gib: Option<f64>) -> Option<Measured> {
    let ready = json!({"threads": 2, "num_parameters": 149, "compute_dtype": ["f16"]});
    Some(Measured { told: Said { ready, done, pieces: pieces.to_vec() }, driver_gib })
}

fn both() -> Outcome {
    Outcome {
        ours: side(
            json!({
                "peak_host_gib": 3.0, "peak_pool_reserved_gib": 6.0, "peak_vram_gib": 7.0,
                "tape_bytes": 1 << 20, "loss": 2.5, "skipped_steps": 0, "tf32": false,
            }),
            &[1.0, 4.0, 2.0],
            Some(7.5),
        ),
        peer: side(
            json!({
                "peak_host_gib": 4.0, "peak_pool_reserved_gib": 8.0, "saved_bytes": 2 << 20,
                "loss": 2.25,
            }),
            &[2.0, 4.0, 1.0],
            Some(9.0),
        ),
        failed: None,
    }
}

/// The ratios of the pairs are 0.5, 1 and 2; the ratio of the medians happens to be 1 as well.
#[test]
fn ratios_are_of_pairs() {
    let record = Record::new(&case(Work::Train, "flex"), &both());
    assert_eq!(record.pairs, 3);
    assert_eq!(record.time_ratio, Some(1.0));
    assert_eq!(record.time_ratio_interval, Some([0.5, 2.0]));
    assert_eq!(record.time_ratio_interval_coverage, Some(0.75));
    assert_eq!(record.memory_ratio, Some(0.75));
    assert_eq!(record.tape_ratio, Some(0.5));
    assert_eq!(record.ours_images_per_s, None);
    assert!(record.alternated);
    assert_eq!(
        record.row(),
        "| train/amp-gc/77 | 2.000 (1.000 to 4.000) | 2.000 (1.000 to 4.000) | 1.000 [0.500, \
         2.000] | 3.00, 4.00 | 0.750 | 1.0, 2.0 | 0.500 | -, - |"
    );
}

#[test]
fn on_a_gpu_the_peak_is_the_pools() {
    let record = Record::new(&case(Work::Encode, "cuda:0"), &both());
    assert_eq!((record.ours_peak_gib, record.peer_peak_gib), (Some(6.0), Some(8.0)));
    assert_eq!((record.ours_driver_gib, record.peer_driver_gib), (Some(7.5), Some(9.0)));
    assert_eq!(record.ours_nvml_gib, Some(7.0));
    assert_eq!((record.ours_images_per_s, record.peer_images_per_s), (Some(4.0), Some(4.0)));
    assert!(!record.alternated);
}

#[test]
fn what_is_missing_is_null_and_has_a_reason() {
    let outcome = Outcome { peer: None, failed: Some("PyTorch died".into()), ..both() };
    let record = Record::new(&case(Work::Train, "flex"), &outcome);
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!((&json["pairs"], &json["ours_s"]["median"]), (&json!(3), &json!(2.0)));
    for key in ["peer_s", "time_ratio", "time_ratio_interval", "memory_ratio", "tape_ratio"] {
        assert_eq!(json.get(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(json["failed"], "PyTorch died");
    assert!(record.row().ends_with("failed: PyTorch died"), "{}", record.row());

    let json = serde_json::to_value(Record::not_reached(&case(Work::Train, "flex"))).unwrap();
    assert_eq!((&json["pairs"], &json["failed"]), (&json!(0), &json!("not reached")));
}
