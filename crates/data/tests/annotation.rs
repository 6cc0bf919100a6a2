//! Reading CUHK-PEDES as published, and every way in which a copy of it can be broken.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

mod tiny;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tbps_data::{DataError, Dataset, RecordFault, SplitName};
use tiny::{Tiny, record, records};

#[test]
fn reads_images_and_all_captions_in_file_order() {
    let tiny = Tiny::new(&records());
    let dataset = Dataset::open(tiny.root()).unwrap();

    let pids: Vec<i64> = dataset.train.images.iter().map(|image| image.pid).collect();
    assert_eq!(pids, [9, 5, 12, 9]);
    let captions: Vec<(usize, i64)> =
        dataset.train.captions.iter().map(|caption| (caption.image, caption.pid)).collect();
    assert_eq!(captions, [(0, 9), (0, 9), (0, 9), (1, 5), (1, 5), (2, 12), (3, 9)]);
    assert_eq!(dataset.train.captions[1].text, "a  MAN in black ");
    assert_eq!((dataset.val.images.len(), dataset.test.captions.len()), (1, 1));
    assert_eq!(dataset.images().count(), 6);
    assert_eq!(dataset.image_path(&dataset.val.images[0]), tiny.image("test_query/p3.jpg"));
}

#[test]
fn train_labels_are_dense_and_know_their_ids() {
    let tiny = Tiny::new(&records());
    let dataset = Dataset::open(tiny.root()).unwrap();
    assert_eq!(dataset.train_pids, [5, 9, 12]);
    assert_eq!(dataset.train_label(12), Some(2));
    assert_eq!(dataset.train_label(20), None);
}

#[test]
fn ten_captions_are_ten_queries() {
    let captions: Vec<String> = (0..10).map(|number| format!("Caption {number}.")).collect();
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    let tiny = Tiny::new(&[record("test", 1, "test_query/p2703_s3526.jpg", &captions)]);
    let dataset = Dataset::open(tiny.root()).unwrap();
    assert_eq!((dataset.test.images.len(), dataset.test.captions.len()), (1, 10));
}

#[test]
fn processed_tokens_are_optional_and_ignored() {
    let mut with_tokens = record("train", 1, "a.png", &["A man."]);
    with_tokens["processed_tokens"] = json!([["a", "man"]]);
    let tiny = Tiny::new(&[with_tokens, record("train", 2, "b.png", &["A boy."])]);
    assert_eq!(Dataset::open(tiny.root()).unwrap().train.images.len(), 2);
}

#[test]
fn text_is_utf8_with_or_without_a_byte_order_mark() {
    let tiny = Tiny::new(&records());
    let text = serde_json::to_string(&[record("val", 1, "a.png", &["crème, 女人"])]).unwrap();
    for prefix in ["", "\u{feff}"] {
        tiny.write_annotation(format!("{prefix}{text}").as_bytes());
        assert_eq!(Dataset::open(tiny.root()).unwrap().val.captions[0].text, "crème, 女人");
    }
}

#[test]
fn the_fingerprint_counts_files_and_bytes() {
    let tiny = Tiny::new(&records());
    let dataset = Dataset::open(tiny.root()).unwrap();
    let fingerprint = dataset.fingerprint().unwrap();
    let size =
        |file_path: &Value| fs::metadata(tiny.image(file_path.as_str().unwrap())).unwrap().len();
    let num_bytes: u64 = records().iter().map(|record| size(&record["file_path"])).sum();
    assert_eq!((fingerprint.num_files, fingerprint.num_bytes), (6, num_bytes));
    assert_eq!(fingerprint.annotation_sha256.len(), 64);

    fs::write(tiny.image("Market/p4.jpg"), b"four").unwrap();
    let changed = dataset.fingerprint().unwrap();
    assert_ne!(changed.num_bytes, fingerprint.num_bytes);
    assert_eq!(changed.annotation_sha256, fingerprint.annotation_sha256);

    fs::remove_file(tiny.image("Market/p4.jpg")).unwrap();
    assert!(dataset.fingerprint().unwrap_err().to_string().contains("p4.jpg"));
}

#[test]
fn an_empty_split_is_an_error_once_it_is_needed() {
    let tiny = Tiny::new(&[record("train", 1, "a.png", &["A man."])]);
    let dataset = Dataset::open(tiny.root()).unwrap();
    assert_eq!(dataset.split(SplitName::Train).unwrap().captions.len(), 1);
    let error = dataset.split(SplitName::Val).unwrap_err();
    assert!(error.to_string().contains("no record of split \"val\""), "{error}");
}

fn open_error(root: &Path) -> DataError {
    Dataset::open(root).unwrap_err()
}

#[test]
fn missing_parts_are_named() {
    let tiny = Tiny::new(&records());
    let annotation = tiny.root().join("reid_raw.json");

    let error = open_error(&tiny.root().join("nowhere"));
    assert!(matches!(error, DataError::RootNotFound { .. }), "{error}");
    let error = open_error(&annotation);
    assert!(matches!(error, DataError::RootNotFound { .. }), "{error}");

    fs::remove_dir_all(tiny.root().join("imgs")).unwrap();
    let error = open_error(tiny.root());
    assert!(matches!(error, DataError::ImagesNotFound { .. }), "{error}");

    fs::rename(&annotation, tiny.root().join("caption_all.json")).unwrap();
    let error = open_error(tiny.root());
    assert!(matches!(error, DataError::SplitsNotFound { .. }), "{error}");
    assert!(error.to_string().contains("ask the authors of CUHK-PEDES for reid_raw.json"));

    fs::remove_file(tiny.root().join("caption_all.json")).unwrap();
    let error = open_error(tiny.root());
    assert!(matches!(error, DataError::AnnotationNotFound { .. }), "{error}");
}

#[test]
fn bad_files_are_refused() {
    let tiny = Tiny::new(&records());
    tiny.write_annotation(b"[\"caf\xe9\"]");
    let error = open_error(tiny.root());
    assert!(matches!(error, DataError::NotUtf8 { offset: 5, .. }), "{error}");

    for text in ["", "{}", "[1, 2", "[] x", "null"] {
        tiny.write_annotation(text.as_bytes());
        let error = open_error(tiny.root());
        assert!(matches!(error, DataError::Json { .. }), "{text}: {error}");
    }
}

/// Opens a data set whose record 1 is `bad`; the error must say so.
fn record_fault(bad: Value) -> RecordFault {
    let tiny = Tiny::new(&records());
    let good = record("train", 1, "a.png", &["A man."]);
    tiny.write_annotation(&serde_json::to_vec(&[good, bad]).unwrap());
    match open_error(tiny.root()) {
        DataError::Record { index: 1, fault, .. } => fault,
        other => panic!("expected a fault of record 1, got: {other}"),
    }
}

#[test]
fn malformed_records_are_named_by_position() {
    let check = |bad: Value, expected: &str| {
        let message = record_fault(bad).to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(json!({ "split": "train", "id": 1, "file_path": "b.png" }), "missing field `captions`");
    check(json!(7), "expected a map");
    check(record("trainval", 1, "b.png", &["x"]), "unknown variant `trainval`");
    check(record("train", 1, "b.png", &[]), "no caption");
    check(record("train", -1, "b.png", &["x"]), "id -1 is negative");
    let mut text_id = record("train", 1, "b.png", &["x"]);
    text_id["id"] = json!("one");
    check(text_id, "expected i64");
    let mut bare_caption = record("train", 1, "b.png", &["x"]);
    bare_caption["captions"] = json!("x");
    check(bare_caption, "expected a sequence");
}

#[test]
fn paths_that_leave_the_image_folder_are_refused() {
    for file_path in ["/etc/passwd", "../secret.png", "a/../../secret.png", ""] {
        let fault = record_fault(record("train", 1, file_path, &["x"]));
        assert!(matches!(fault, RecordFault::OutsideImages { .. }), "{file_path:?}: {fault}");
    }
}

#[test]
fn an_image_listed_twice_is_refused() {
    for file_path in ["a.png", "./a.png"] {
        let fault = record_fault(record("test", 2, file_path, &["x"]));
        assert!(matches!(fault, RecordFault::Duplicate { first: 0, .. }), "{fault}");
    }
}
