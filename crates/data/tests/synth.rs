//! The synthetic data set as files: complete, decodable, reproducible, and never over other files.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayon::ThreadPoolBuilder;
use tbps_data::check::check;
use tbps_data::synth::{Preset, generate};
use tbps_data::{DataError, Dataset};
use tempfile::TempDir;

const SEED: u64 = 3;

/// The smoke preset, generated once for all tests.
fn smoke() -> &'static Path {
    static SMOKE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, root) = SMOKE.get_or_init(|| {
        let parent = TempDir::new().unwrap();
        let root = parent.path().join("smoke");
        generate(Preset::Smoke, SEED, &root, &|_, _| {}).unwrap();
        (parent, root)
    });
    root
}

/// Content of every file under `root` by relative path.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn it_reads_back_as_cuhk_pedes_and_every_image_decodes() {
    let dataset = Dataset::open(smoke()).unwrap();
    for (split, images) in [(&dataset.train, 128), (&dataset.val, 48), (&dataset.test, 48)] {
        assert_eq!(split.images.len(), images);
        assert_eq!(split.captions.len(), 2 * images);
    }
    assert_eq!(dataset.train_pids, (1..=64).collect::<Vec<i64>>());
    let report = check(&dataset, &|_, _| {});
    assert!(report.is_clean(), "{:?}", report.faults);
}

#[test]
fn all_folders_and_formats_occur_and_folders_do_not_tell_the_split() {
    let dataset = Dataset::open(smoke()).unwrap();
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for split in [&dataset.train, &dataset.val, &dataset.test] {
        for image in &split.images {
            *folders.entry(image.path.parent().unwrap().to_owned()).or_default() += 1;
        }
    }
    let names: Vec<_> = folders.keys().map(|path| path.to_str().unwrap()).collect();
    let all = ["CUHK01", "CUHK03", "Market", "cam_a", "cam_b", "test_query", "train_query"];
    assert_eq!(names, all);
    let in_train_folder = |path: &Path| path.starts_with("train_query");
    assert!(dataset.test.images.iter().any(|image| in_train_folder(&image.path)));
    assert!(dataset.train.images.iter().any(|image| !in_train_folder(&image.path)));
}

#[test]
fn images_of_one_id_differ() {
    let dataset = Dataset::open(smoke()).unwrap();
    let mut by_pid: BTreeMap<i64, Vec<Vec<u8>>> = BTreeMap::new();
    for image in &dataset.train.images {
        let bytes = fs::read(dataset.image_path(image)).unwrap();
        by_pid.entry(image.pid).or_default().push(bytes);
    }
    for (pid, views) in by_pid {
        assert!(matches!(&views[..], [a, b] if a != b), "id {pid}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_for_any_number_of_threads() {
    let parent = TempDir::new().unwrap();
    let root = parent.path().join("again");
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| generate(Preset::Smoke, SEED, &root, &|_, _| {})).unwrap();
    assert!(contents(smoke()) == contents(&root), "the two data sets differ");
}

#[test]
fn it_reports_progress_and_leaves_nothing_beside_the_data_set() {
    let parent = TempDir::new().unwrap();
    let root = parent.path().join("new");
    let calls = std::cell::RefCell::new(Vec::new());
    let summary = generate(Preset::Smoke, SEED + 1, &root, &|done, total| {
        calls.borrow_mut().push((done, total));
    })
    .unwrap();
    assert_eq!(calls.into_inner(), [(128, 224), (224, 224)]);
    assert_eq!((summary.train.ids, summary.val.images, summary.test.captions), (64, 48, 96));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    assert!(contents(smoke()) != contents(&root), "another seed gives other files");
}

#[test]
fn it_does_not_write_over_other_files() {
    let parent = TempDir::new().unwrap();
    fs::write(parent.path().join("thesis.txt"), "years of work").unwrap();
    let error = generate(Preset::Smoke, SEED, parent.path(), &|_, _| {}).unwrap_err();
    assert!(matches!(&error, DataError::OutputNotEmpty { path } if path == parent.path()));
    assert_eq!(contents(parent.path()).len(), 1);

    let empty = TempDir::new().unwrap();
    generate(Preset::Smoke, SEED, empty.path(), &|_, _| {}).unwrap();
    assert!(Dataset::open(empty.path()).is_ok());
}
