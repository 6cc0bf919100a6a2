//! Training batches: the same for any number of threads, after a resume, and never a panic.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

mod tiny;

use std::fs;
use std::sync::Arc;

use tbps_data::{
    AugmentConfig, Batch, DataError, Dataset, ImageSize, LoaderConfig, Sampler, Tokenizer,
    TrainLoader, epoch_order, pixels,
};
use tiny::{Tiny, record, records};

fn config() -> LoaderConfig {
    LoaderConfig {
        batch_size: 2,
        image_size: ImageSize { height: 48, width: 16 },
        context_length: 12,
        sampler: Sampler::Shuffle,
        seed: 11,
        threads: 2,
        augment: AugmentConfig::default(),
    }
}

fn loader(tiny: &Tiny, config: LoaderConfig) -> Result<TrainLoader, DataError> {
    let dataset = Arc::new(Dataset::open(tiny.root()).unwrap());
    let tokenizer = Arc::new(Tokenizer::new(1_024).unwrap());
    TrainLoader::new(dataset, tokenizer, config)
}

fn batches(tiny: &Tiny, config: LoaderConfig, epoch: u64, first_batch: usize) -> Vec<Batch> {
    loader(tiny, config).unwrap().epoch(epoch, first_batch).map(Result::unwrap).collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let tiny = Tiny::new(&records());
    let with = |threads| batches(&tiny, LoaderConfig { threads, ..config() }, 3, 0);
    let one = with(1);
    assert_eq!(one.len(), 3);
    assert!(one == with(2), "2 threads");
    assert!(one == with(5), "5 threads");
}

#[test]
fn a_batch_holds_the_pairs_of_the_epoch_order() {
    let tiny = Tiny::new(&records());
    let config = LoaderConfig { augment: AugmentConfig::off(), ..config() };
    let dataset = Dataset::open(tiny.root()).unwrap();
    let tokenizer = Tokenizer::new(1_024).unwrap();
    let order = epoch_order(7, config.seed, 1);
    for (batch, index) in batches(&tiny, config.clone(), 1, 0).iter().zip(order.chunks(2)) {
        assert_eq!((batch.len, &batch.index[..]), (2, index));
        for (slot, &index) in index.iter().enumerate() {
            let caption = &dataset.train.captions[index as usize];
            let image = dataset.image_path(&dataset.train.images[caption.image]);
            assert_eq!(dataset.train_pids[batch.pids[slot] as usize], caption.pid);
            assert_eq!(
                batch.token_ids[12 * slot..12 * (slot + 1)],
                tokenizer.encode(&caption.text, 12)
            );
            let elements = config.image_size.num_elements();
            assert_eq!(
                batch.pixels[elements * slot..elements * (slot + 1)],
                pixels(&image, config.image_size).unwrap()
            );
        }
    }
}

#[test]
fn a_digest_tells_order_captions_and_augmentation_apart() {
    let tiny = Tiny::new(&records());
    let digests = |config, epoch| {
        batches(&tiny, config, epoch, 0).iter().map(|batch| batch.digest).collect::<Vec<_>>()
    };
    let plain = digests(config(), 1);
    assert_eq!(plain, digests(LoaderConfig { threads: 5, ..config() }, 1));
    for (change, other) in [
        ("epoch", digests(config(), 2)),
        ("seed", digests(LoaderConfig { seed: 12, ..config() }, 1)),
        ("augmentation", digests(LoaderConfig { augment: AugmentConfig::off(), ..config() }, 1)),
        ("tokens", digests(LoaderConfig { context_length: 11, ..config() }, 1)),
    ] {
        assert!(plain.iter().all(|digest| !other.contains(digest)), "{change}");
    }
}

#[test]
fn a_resumed_epoch_goes_on_with_the_same_batches() {
    let tiny = Tiny::new(&records());
    for sampler in [Sampler::Shuffle, Sampler::DistinctPids] {
        let config = LoaderConfig { sampler, ..config() };
        let all = batches(&tiny, config.clone(), 3, 0);
        assert_eq!(all.len(), 3);
        for first in 0..=3 {
            let rest = batches(&tiny, config.clone(), 3, first);
            assert!(rest == all[first..], "{sampler:?} from batch {first}");
        }
        assert_eq!(batches(&tiny, config, 3, 9).len(), 0);
    }
}

#[test]
fn false_negatives_are_counted_and_can_be_avoided() {
    // Four of the seven pairs show person 9: with three batches, one has two of them at least.
    let tiny = Tiny::new(&records());
    let counted = |sampler, epoch| {
        let config = LoaderConfig { sampler, ..config() };
        let batches = batches(&tiny, config.clone(), epoch, 0);
        let seen = batches.iter().filter(|batch| batch.pids[0] == batch.pids[1]).count() as u64;
        assert_eq!(loader(&tiny, config).unwrap().same_pid_pairs(epoch), seen);
        seen
    };
    let all = |sampler| (0..50).map(|epoch| counted(sampler, epoch)).sum::<u64>();
    let (shuffle, distinct) = (all(Sampler::Shuffle), all(Sampler::DistinctPids));
    assert!(distinct < shuffle, "{distinct} and {shuffle}");
}

#[test]
fn augmentation_changes_from_epoch_to_epoch_and_with_the_seed() {
    let tiny = Tiny::new(&[record("train", 1, "a.png", &["A man."])]);
    let one = LoaderConfig { batch_size: 1, ..config() };
    let pixels_of = |config, epoch| batches(&tiny, config, epoch, 0).remove(0).pixels;
    assert_eq!(pixels_of(one.clone(), 0), pixels_of(one.clone(), 0));
    assert_ne!(pixels_of(one.clone(), 0), pixels_of(one.clone(), 1));
    assert_ne!(pixels_of(one.clone(), 0), pixels_of(LoaderConfig { seed: 12, ..one }, 0));
}

#[test]
fn a_batch_larger_than_the_data_is_refused() {
    let tiny = Tiny::new(&records());
    let error = loader(&tiny, LoaderConfig { batch_size: 8, ..config() }).err().unwrap();
    assert!(matches!(error, DataError::BatchTooLarge { batch_size: 8, num_pairs: 7 }), "{error}");
    assert_eq!(batches(&tiny, LoaderConfig { batch_size: 7, ..config() }, 0, 0).len(), 1);
}

#[test]
fn a_train_split_without_records_is_refused() {
    let tiny = Tiny::new(&[record("test", 1, "a.png", &["A man."])]);
    let error = loader(&tiny, config()).err().unwrap();
    assert!(matches!(error, DataError::EmptySplit { .. }), "{error}");
}

#[test]
fn a_broken_image_is_an_error_that_ends_the_epoch() {
    let tiny = Tiny::new(&records());
    let path = tiny.image("train_query/p1.jpg");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..100]).unwrap();
    let results: Vec<_> =
        loader(&tiny, LoaderConfig { batch_size: 7, ..config() }).unwrap().epoch(0, 0).collect();
    match &results[..] {
        [Err(DataError::Truncated { path: named })] => assert_eq!(named, &path),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dropping_the_iterator_ends_its_work() {
    let tiny = Tiny::new(&records());
    let loader = loader(&tiny, LoaderConfig { batch_size: 1, ..config() }).unwrap();
    let mut batches = loader.epoch(0, 0);
    assert_eq!(batches.next().unwrap().unwrap().len, 1);
    // Returns only because the producer, which waits for room in the queue, gives up.
    drop(batches);
    // All images are gone: had it gone on, it would fail now; a new epoch must.
    fs::remove_dir_all(tiny.root().join("imgs")).unwrap();
    assert!(loader.epoch(0, 0).next().unwrap().is_err());
}
