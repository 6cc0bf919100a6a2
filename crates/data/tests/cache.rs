//! The cache of resized images: the same batches as without it, and no damage goes unseen.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

mod tiny;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tbps_data::cache::{Observer, PixelCache};
use tbps_data::{
    AugmentConfig, DataError, Dataset, Fingerprint, ImageSize, LoaderConfig, Sampler, Tokenizer,
    TrainLoader, load_images,
};
use tiny::{Tiny, records};

const SIZE: ImageSize = ImageSize { height: 48, width: 16 };
/// Images of [`records`].
const NUM_IMAGES: usize = 6;

/// A data set, a folder for its cache, and what was known before anything was broken.
struct Place {
    tiny: Tiny,
    dataset: Arc<Dataset>,
    fingerprint: Fingerprint,
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let tiny = Tiny::new(&records());
        let dataset = Arc::new(Dataset::open(tiny.root()).unwrap());
        let fingerprint = dataset.fingerprint().unwrap();
        Self { tiny, dataset, fingerprint, dir: tempfile::tempdir().unwrap() }
    }

    fn dir(&self) -> PathBuf {
        self.dir.path().join("a/b")
    }

    /// Opens the cache; also how many images were decoded for it, and the warnings.
    fn open(&self, size: ImageSize) -> (Result<PixelCache, DataError>, usize, Vec<String>) {
        let (decoded, warnings) = (AtomicUsize::new(0), RefCell::new(Vec::new()));
        let progress = |done: usize, total: usize| {
            assert!((1..=NUM_IMAGES).contains(&done) && total == NUM_IMAGES);
            decoded.fetch_add(1, Ordering::Relaxed);
        };
        let warn = |line: &str| warnings.borrow_mut().push(line.to_owned());
        let observer = Observer { progress: &progress, warn: &warn };
        let (dataset, fingerprint) = (&self.dataset, &self.fingerprint);
        let cache =
            PixelCache::open_or_build(dataset, fingerprint, size, &self.dir(), 2, &observer);
        (cache, decoded.into_inner(), warnings.into_inner())
    }

    /// The only cache in the folder.
    fn file(&self) -> PathBuf {
        let files = names(&self.dir());
        let pixels: Vec<&PathBuf> =
            files.iter().filter(|path| path.extension().unwrap() == "pixels").collect();
        assert_eq!(pixels.len(), 1, "{files:?}");
        pixels[0].clone()
    }

    /// Every batch of two epochs.
    fn batches(&self, cache: Option<PixelCache>) -> Vec<tbps_data::Batch> {
        let config = LoaderConfig {
            batch_size: 2,
            sampler: Sampler::Shuffle,
            image_size: SIZE,
            context_length: 12,
            seed: 11,
            threads: 2,
            augment: AugmentConfig::default(),
        };
        let tokenizer = Arc::new(Tokenizer::new(1_024).unwrap());
        let loader = TrainLoader::new(Arc::clone(&self.dataset), tokenizer, config).unwrap();
        let loader = match cache {
            Some(cache) => loader.with_cache(Arc::new(cache)),
            None => loader,
        };
        (0..2).flat_map(|epoch| loader.epoch(epoch, 0)).map(Result::unwrap).collect()
    }
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

#[test]
fn batches_from_the_cache_are_those_from_the_files() {
    let place = Place::new();
    let paths: Vec<PathBuf> =
        place.dataset.test.images.iter().map(|image| place.dataset.image_path(image)).collect();
    let batches = place.batches(None);
    let images = load_images(&paths, SIZE, 2, None).unwrap();
    let (cache, decoded, warnings) = place.open(SIZE);
    assert_eq!((decoded, warnings), (NUM_IMAGES, vec![]));

    // Without its files, the data set is read from the cache or not at all.
    fs::remove_dir_all(place.tiny.root().join("imgs")).unwrap();
    let cache = cache.unwrap();
    assert!(images == load_images(&paths, SIZE, 2, Some(&cache)).unwrap());
    assert!(batches == place.batches(Some(cache)));
}

#[test]
fn a_cache_is_built_once_for_each_size() {
    let place = Place::new();
    let other = ImageSize { height: 20, width: 10 };
    assert_eq!(place.open(SIZE).1, NUM_IMAGES);
    assert_eq!(place.open(SIZE).1, 0);
    let (cache, decoded, _) = place.open(other);
    assert_eq!(decoded, NUM_IMAGES);
    let path = place.dataset.image_path(&place.dataset.train.images[0]);
    let cache = cache.unwrap();
    assert_eq!(cache.get(&path, other).map(<[u8]>::len), Some(3 * 20 * 10));
    assert_eq!(cache.get(&path, SIZE), None);
    assert_eq!(cache.get(Path::new("elsewhere.jpg"), other), None);
}

#[test]
fn damage_is_seen_and_repaired() {
    let check = |why: &str, damage: fn(&mut Vec<u8>)| {
        let place = Place::new();
        place.open(SIZE).0.unwrap();
        let file = place.file();
        let whole = fs::read(&file).unwrap();
        let mut broken = whole.clone();
        damage(&mut broken);
        fs::write(&file, broken).unwrap();
        let (cache, decoded, warnings) = place.open(SIZE);
        cache.unwrap();
        let expected = format!("{} is damaged ({why}); building it again", file.display());
        assert_eq!((decoded, warnings), (NUM_IMAGES, vec![expected]));
        assert!(fs::read(&file).unwrap() == whole, "{why}");
    };
    check("17943 bytes instead of 17944", |bytes| bytes.truncate(bytes.len() - 1));
    check("0 bytes instead of 17944", Vec::clear);
    check("another header", |bytes| bytes[20] ^= 1);
    check("another header", |bytes| bytes.fill(0));
    check("image 0 has another checksum", |bytes| bytes[4_096] ^= 1);
    check("image 5 has another checksum", |bytes| bytes[4_096 + 6 * 2_304 - 1] ^= 1);
    check("image 5 has another checksum", |bytes| *bytes.last_mut().unwrap() ^= 1);
}

#[test]
fn a_changed_data_set_gets_a_cache_of_its_own() {
    let mut place = Place::new();
    place.open(SIZE).0.unwrap();
    place.fingerprint.num_bytes += 1;
    assert_eq!(place.open(SIZE).1, NUM_IMAGES);
}

#[test]
fn several_builders_at_once_leave_one_whole_file() {
    let place = Place::new();
    let decoded: usize = std::thread::scope(|scope| {
        let builders: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let decoded = AtomicUsize::new(0);
                    let progress = |_: usize, _: usize| {
                        decoded.fetch_add(1, Ordering::Relaxed);
                    };
                    let observer = Observer { progress: &progress, warn: &|_: &str| {} };
                    let (dataset, fingerprint) = (&place.dataset, &place.fingerprint);
                    PixelCache::open_or_build(
                        dataset,
                        fingerprint,
                        SIZE,
                        &place.dir(),
                        1,
                        &observer,
                    )
                    .unwrap();
                    decoded.into_inner()
                })
            })
            .collect();
        builders.into_iter().map(|builder| builder.join().unwrap()).sum()
    });
    assert_eq!(decoded, NUM_IMAGES);
    let file = place.file();
    assert_eq!(names(&place.dir()), [file.with_extension("lock"), file]);
    assert_eq!(place.open(SIZE).1, 0);
}

#[test]
fn a_broken_image_is_named_and_leaves_nothing() {
    let place = Place::new();
    let image = place.tiny.image("test_query/p3.jpg");
    fs::write(&image, b"no image").unwrap();
    match place.open(SIZE).0 {
        Err(DataError::Decode { path, .. }) => assert_eq!(path, image),
        other => panic!("{other:?}"),
    }
    let left = names(&place.dir());
    assert!(left.iter().all(|path| path.extension().unwrap() == "lock"), "{left:?}");
}
