//! Captions and images per second on one thread, without a device.
//!
//! ```text
//! cargo run --release -p tbps-data --example throughput -- captions.txt images/
//! ```
//!
//! The captions are tokenised to 77 ids; every JPEG file of the folder is decoded, resized to
//! 384x128, normalised and augmented as in training. `benchmarks/data/throughput.py` does the same
//! in Python. Each figure is the best of five rounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use tbps_data::augment::Augmentation;
use tbps_data::image::{decode, resize};
use tbps_data::rng::{Purpose, Stream};
use tbps_data::{AugmentConfig, DataError, ImageSize, Tokenizer};

const ROUNDS: usize = 5;
const CONTEXT_LENGTH: usize = 77;
const SIZE: ImageSize = ImageSize { height: 384, width: 128 };

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example reports what it measures"
)]
fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [captions, images] = arguments.as_slice() else {
        eprintln!("usage: throughput CAPTIONS IMAGES");
        return ExitCode::FAILURE;
    };
    match measure(captions, images) {
        Ok((captions, images)) => {
            println!("captions/s {captions:.0}\nimages/s   {images:.1}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(captions: &Path, images: &Path) -> Result<(f64, f64), DataError> {
    let io = |source| DataError::Io { path: captions.to_path_buf(), source };
    let text = fs::read_to_string(captions).map_err(io)?;
    let captions: Vec<&str> = text.lines().collect();
    let tokenizer = Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE)?;
    let captions_per_s = per_s(captions.len(), || {
        for caption in &captions {
            std::hint::black_box(tokenizer.encode(caption, CONTEXT_LENGTH));
        }
        Ok(())
    })?;

    let io = |source| DataError::Io { path: images.to_path_buf(), source };
    let entries = fs::read_dir(images).map_err(io)?.flatten().map(|entry| entry.path());
    let files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ext| ext == "jpg")).collect();
    let mut pixels = vec![0.0; SIZE.num_elements()];
    let images_per_s = per_s(files.len(), || {
        for (index, file) in files.iter().enumerate() {
            let mut stream = Stream::new(0, Purpose::Augment, &[index as u64]);
            let augmentation = Augmentation::draw(&AugmentConfig::default(), SIZE, &mut stream);
            augmentation.apply(&resize(&decode(file)?, SIZE), SIZE, &mut pixels);
        }
        Ok(())
    })?;
    Ok((captions_per_s, images_per_s))
}

/// The best rate of some rounds over `count` things.
fn per_s(count: usize, mut round: impl FnMut() -> Result<(), DataError>) -> Result<f64, DataError> {
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        round()?;
        best = best.max(count as f64 / began.elapsed().as_secs_f64());
    }
    Ok(best)
}
