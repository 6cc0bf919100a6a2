//! The three data sets as published: told apart by their files, read by their own rules.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

mod tiny;

use std::fs;

use serde_json::{Value, json};
use tbps_data::stats::stats;
use tbps_data::{Dataset, DatasetName, SplitName, Tokenizer};
use tiny::{Tiny, record, records};

const ICFG: &str = "ICFG-PEDES.json";
const ICFG_UNDERSCORE: &str = "ICFG_PEDES.json";
const RSTP: &str = "data_captions.json";

/// Ten people of ICFG-PEDES in train and two in test, two images each, ids from 0.
fn icfg_records() -> Vec<Value> {
    let person = |id: i64| {
        let (split, folder) = if id < 10 { ("train", "test") } else { ("test", "train") };
        let image = move |number: i64| {
            let path = format!("{folder}/{id:04}/{id:04}_{number:03}.jpg");
            record(split, id, &path, &["A man in a black coat."])
        };
        [image(0), image(1)]
    };
    (0..12).flat_map(person).collect()
}

/// Three people of RSTPReid, one in each split, ids from 0, images directly in `imgs/`.
fn rstp_records() -> Vec<Value> {
    let splits = ["train", "val", "test"].into_iter().enumerate();
    let person = |(id, split)| {
        json!({
            "id": id,
            "img_path": format!("{id:04}_c14_0031.jpg"),
            "captions": ["A woman.", "She walks."],
            "split": split,
        })
    };
    splits.map(person).collect()
}

#[test]
fn each_is_recognised_by_its_file() {
    for (file, records, name) in [
        ("reid_raw.json", records(), DatasetName::CuhkPedes),
        (ICFG, icfg_records(), DatasetName::IcfgPedes),
        (ICFG_UNDERSCORE, icfg_records(), DatasetName::IcfgPedes),
        (RSTP, rstp_records(), DatasetName::RstpReid),
    ] {
        let tiny = Tiny::named(file, &records);
        let dataset = Dataset::open(tiny.root()).unwrap();
        assert_eq!(dataset.name, name, "{file}");
        assert_eq!(dataset.annotation, tiny.root().join(file));
        assert_eq!(Dataset::open_as(tiny.root(), Some(name)).unwrap(), dataset);
        let image = dataset.images().next().unwrap();
        assert!(dataset.image_path(image).is_file(), "{file}");
    }
}

#[test]
fn rstpreid_has_its_own_key_and_ids_from_zero() {
    let tiny = Tiny::named(RSTP, &rstp_records());
    let dataset = Dataset::open(tiny.root()).unwrap();
    assert_eq!((dataset.train_pids.as_slice(), dataset.train_label(0)), (&[0][..], Some(0)));
    // No split is renumbered on its own.
    let pids = SplitName::ALL.map(|split| dataset.records(split).captions[1].pid);
    assert_eq!(pids, [0, 1, 2]);

    let mut bad = rstp_records();
    bad[1] = record("val", 1, "1.jpg", &["x"]);
    tiny.write_annotation(&serde_json::to_vec(&bad).unwrap());
    let error = Dataset::open(tiny.root()).unwrap_err().to_string();
    let expected =
        "data_captions.json: record 1 (counted from 0): missing field `img_path`; correct or";
    assert!(error.contains(expected), "{error}");

    bad[1] = rstp_records()[0].clone();
    tiny.write_annotation(&serde_json::to_vec(&bad).unwrap());
    let error = Dataset::open(tiny.root()).unwrap_err().to_string();
    assert!(error.contains("img_path \"0000_c14_0031.jpg\" is already in record 0"), "{error}");
}

#[test]
fn several_data_sets_in_a_folder_need_a_name() {
    let tiny = Tiny::named(RSTP, &rstp_records());
    let icfg = serde_json::to_vec(&icfg_records()).unwrap();
    fs::write(tiny.root().join(ICFG), icfg).unwrap();
    let error = Dataset::open(tiny.root()).unwrap_err().to_string();
    let expected = "has annotation files of ICFG-PEDES and of RSTPReid; say which one by --dataset, \
                    or by data.dataset in a configuration";
    assert!(error.ends_with(expected), "{error}");
    for name in [DatasetName::IcfgPedes, DatasetName::RstpReid] {
        assert_eq!(Dataset::open_as(tiny.root(), Some(name)).unwrap().name, name);
    }
    let error = Dataset::open_as(tiny.root(), Some(DatasetName::CuhkPedes)).unwrap_err();
    let expected = "has no reid_raw.json; point to the folder that holds it beside imgs/";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn a_folder_without_annotation_names_all_that_would_do() {
    let tiny = Tiny::new(&[]);
    fs::remove_file(tiny.root().join("reid_raw.json")).unwrap();
    let error = Dataset::open(tiny.root()).unwrap_err().to_string();
    let expected = "has no reid_raw.json or ICFG-PEDES.json or ICFG_PEDES.json or \
                    data_captions.json; point to the folder that holds it beside imgs/";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn both_names_of_icfg_pedes_must_agree() {
    let tiny = Tiny::named(ICFG, &icfg_records());
    let [first, second] = [ICFG, ICFG_UNDERSCORE].map(|file| tiny.root().join(file));
    fs::copy(&first, &second).unwrap();
    assert_eq!(Dataset::open(tiny.root()).unwrap().annotation, first);

    fs::write(&second, "[]").unwrap();
    let error = Dataset::open(tiny.root()).unwrap_err().to_string();
    let (first, second) = (first.display(), second.display());
    let expected = format!("{first} and {second} differ; remove the one that is not meant");
    assert_eq!(error, expected);
}

#[test]
fn a_second_record_of_an_icfg_image_adds_its_caption() {
    let mut records = icfg_records();
    let mut again = records[3].clone();
    again["captions"] = json!(["Another view of him."]);
    records.push(again);
    let tiny = Tiny::named(ICFG, &records);
    let train = Dataset::open(tiny.root()).unwrap().train;
    assert_eq!((train.images.len(), train.captions.len()), (20, 21));
    assert_eq!((train.captions[20].image, train.captions[20].pid), (3, 1));

    // Of another person or in another split it is a mistake.
    for (field, value) in [("id", json!(2)), ("split", json!("test"))] {
        records[24][field] = value;
        tiny.write_annotation(&serde_json::to_vec(&records).unwrap());
        let error = Dataset::open(tiny.root()).unwrap_err().to_string();
        assert!(error.contains("is already in record 3"), "{field}: {error}");
        records[24][field] = records[3][field].clone();
    }
}

#[test]
fn held_out_people_become_the_val_split() {
    let tiny = Tiny::named(ICFG, &icfg_records());
    let whole = Dataset::open(tiny.root()).unwrap();
    let hold_out = |num_ids, seed| whole.clone().hold_out(num_ids, seed).unwrap();
    let dataset = hold_out(3, 1);
    assert_eq!((dataset.train.images.len(), dataset.val.images.len()), (14, 6));
    assert_eq!((dataset.train_pids.len(), dataset.test == whole.test), (7, true));
    for split in [&dataset.train, &dataset.val] {
        for caption in &split.captions {
            assert_eq!(split.images[caption.image].pid, caption.pid);
        }
        assert!(split.images.windows(2).all(|pair| pair[0].path < pair[1].path), "file order");
    }
    let held_out = |dataset: &Dataset| -> Vec<i64> {
        dataset.val.images.iter().map(|image| image.pid).step_by(2).collect()
    };
    assert!(held_out(&dataset).iter().all(|pid| dataset.train_label(*pid).is_none()));
    assert_eq!(hold_out(3, 1), dataset);
    assert!((2..12).any(|seed| held_out(&hold_out(3, seed)) != held_out(&dataset)));
}

#[test]
fn a_hold_out_without_effect_or_rest_is_refused() {
    let message = |tiny: &Tiny, num_ids| {
        Dataset::open(tiny.root()).unwrap().hold_out(num_ids, 0).unwrap_err().to_string()
    };
    let tiny = Tiny::named(RSTP, &rstp_records());
    let expected = "data_captions.json has a val split, beside which holdout_ids = 1 has no effect; \
                    set it to 0";
    assert!(message(&tiny, 1).ends_with(expected), "{}", message(&tiny, 1));

    let tiny = Tiny::named(ICFG, &icfg_records());
    for num_ids in [0, 10, 11] {
        let (message, path) = (message(&tiny, num_ids), tiny.root().join(ICFG));
        let expected = format!(
            "holdout_ids = {num_ids}, but train in {} has 10 people; hold out at least one and \
             leave one",
            path.display()
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn statistics_stand_beside_the_published_counts() {
    let mut records = icfg_records();
    records[0]["captions"] = json!(["a man ".repeat(50)]); // 100 words, start and end
    records[23]["id"] = json!(0);
    let tiny = Tiny::named(ICFG, &records);
    let dataset = Dataset::open(tiny.root()).unwrap();
    let tokenizer = Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE).unwrap();
    let stats = stats(&dataset, &tokenizer, 77);
    assert_eq!(stats.num_shared_ids, 1);
    // ICFG-PEDES has no val split, and neither has this copy.
    assert_eq!(
        stats.splits.iter().map(|s| s.split).collect::<Vec<_>>(),
        [SplitName::Train, SplitName::Test]
    );
    let (train, test) = (&stats.splits[0], &stats.splits[1]);
    assert_eq!((train.counts.num_ids, train.counts.num_images), (10, 20));
    assert_eq!((train.official.num_ids, train.official.num_images), (3_102, 34_674));
    assert_eq!((train.pids, test.pids), (Some((0, 9)), Some((0, 11))));
    assert_eq!(train.images_per_id, [(2, 10)].into());
    assert_eq!(test.images_per_id, [(1, 2), (2, 1)].into());
    assert_eq!(train.captions_per_image, [(1, 20)].into());
    let tokens = train.tokens.as_ref().unwrap();
    // "a man in a black coat." is seven ids, start and end two.
    assert_eq!((tokens.median, tokens.max, tokens.num_truncated), (9, 102, 1));
    assert_eq!(tokens.mean, (19.0 * 9.0 + 102.0) / 20.0);
}
