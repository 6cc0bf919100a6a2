//! Runs that are killed at random moments end as if nothing had happened.
//!
//! A short form runs with all tests. The whole matrix, with a line per run:
//!
//! ```text
//! TBPS_KILLS=40 cargo test --release -p tbps --test kills -- --nocapture
//! ```
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![expect(clippy::print_stdout, reason = "the long form is a measurement")]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::{json, metrics, train_command, trained};

/// How many kills; the seed of their moments.
const KILLS: (&str, u64) = ("TBPS_KILLS", 5);
const SEED: (&str, u64) = ("TBPS_KILLS_SEED", 0);
const KILLS_PER_RUN: u64 = 5;
/// Steps between checkpoints in `configs/smoke.toml`.
const CHECKPOINT_EVERY: u64 = 3;
/// A run with everything that a checkpoint can hold, and with evaluations within epochs, some of
/// them at the step of a checkpoint.
const SETTINGS: [&str; 5] = [
    "objective.losses=['itc', 'sdm', 'id']",
    "data.sampler=distinct-pids",
    "train.epochs=3",
    "eval.every_steps=7",
    "train.tensorboard=true",
];

fn number(variable: (&str, u64)) -> u64 {
    std::env::var(variable.0).map_or(variable.1, |text| text.parse().unwrap())
}

/// SplitMix64: where the kills fall is a matter of the seed, as far as it is ours to say.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In 0 .. 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// When to kill.
#[derive(Debug)]
enum Moment {
    /// After a time, whatever the run is doing.
    After(Duration),
    /// So long after it has begun to write the n-th checkpoint.
    Writing(u64, Duration),
}

impl Moment {
    fn draw(random: &mut Random, straight: Duration) -> Self {
        if random.next().is_multiple_of(3) {
            let into = Duration::from_micros(random.next() % 4_000);
            return Self::Writing(1 + random.next() % 4, into);
        }
        // So that a run lasts for about as many attempts as there are kills for it.
        Self::After(straight.mul_f64(2.0 / KILLS_PER_RUN as f64 * random.fraction()))
    }

    /// Waits for the moment; false when the run ends before.
    fn wait(&self, child: &mut Child, run: &Path) -> bool {
        let began = Instant::now();
        let mut ended = || child.try_wait().unwrap().is_some();
        match *self {
            Self::After(time) => {
                while began.elapsed() < time {
                    if ended() {
                        return false;
                    }
                    sleep(Duration::from_millis(1).min(time.saturating_sub(began.elapsed())));
                }
            }
            Self::Writing(nth, into) => {
                let mut num_seen = 0;
                let mut was_writing = is_writing(run);
                while num_seen < nth {
                    if ended() {
                        return false;
                    }
                    let writing = is_writing(run);
                    num_seen += u64::from(writing && !was_writing);
                    was_writing = writing;
                    std::hint::spin_loop();
                }
                sleep(into);
            }
        }
        !ended()
    }
}

/// Whether a checkpoint is half there.
fn is_writing(run: &Path) -> bool {
    ["last", "best"].iter().any(|name| run.join(format!("checkpoints/{name}.tmp")).exists())
}

/// Steps made by all attempts so far.
fn num_executed(run: &Path) -> u64 {
    fs::metadata(run.join("executed_steps")).map_or(0, |file| file.len())
}

/// The end-to-end clock at the last whole line.
fn shown_e2e_s(run: &Path) -> f64 {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    let lines = text.lines().rev();
    let mut whole = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    whole.next().map_or(0.0, |line| line["e2e_s"].as_f64().unwrap())
}

/// Everything that must be equal: the log without its times, and the bytes of both checkpoints but
/// the clocks in them.
fn result(run: &Path) -> (Vec<Value>, BTreeMap<PathBuf, Vec<u8>>) {
    let mut files = BTreeMap::new();
    for (name, timed) in [("best", &[][..]), ("last", &["state.json", "manifest.json"])] {
        for entry in fs::read_dir(run.join("checkpoints").join(name)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            if !timed.contains(&file) {
                files.insert(Path::new(name).join(file), fs::read(&path).unwrap());
            }
        }
    }
    (metrics(run), files)
}

/// What happened over all runs.
#[derive(Default)]
struct Tally {
    kills: u64,
    in_writes: u64,
    /// Before the first step of an attempt.
    at_start: u64,
    steps: u64,
    executed: u64,
}

/// Kills a run up to [`KILLS_PER_RUN`] times, lets it end, and compares it with one that nobody
/// killed.
fn check(folder: &Path, cell: &str, seed: u64, random: &mut Random, most: u64) -> Tally {
    let precision = if cell.starts_with("amp") { "amp-fp16" } else { "fp32" };
    let axes = [
        format!("precision={precision}"),
        format!("ema.enabled={}", cell.contains("-ema")),
        format!("recompute={}", if cell.contains("-gc") { "block" } else { "off" }),
        format!("seed={seed}"),
    ];
    let settings: Vec<&str> = SETTINGS.into_iter().chain(axes.iter().map(String::as_str)).collect();
    let began = Instant::now();
    let straight = trained(folder, &format!("{cell}.s{seed}.straight"), &settings);
    let wall = began.elapsed();

    let run = folder.join(format!("{cell}.s{seed}"));
    let mut tally = Tally::default();
    let mut e2e_s = 0.0_f64;
    while tally.kills < most {
        let moment = Moment::draw(random, wall);
        let steps_before = num_executed(&run);
        let mut child = train_command(&run, &settings).arg("--resume").spawn().unwrap();
        if !moment.wait(&mut child, &run) {
            assert!(child.wait().unwrap().success(), "{cell}: {moment:?}");
            break;
        }
        child.kill().unwrap(); // SIGKILL: nothing is saved on the way out
        child.wait().unwrap();
        tally.kills += 1;
        tally.in_writes += u64::from(is_writing(&run));
        tally.at_start += u64::from(num_executed(&run) == steps_before);
        e2e_s = e2e_s.max(shown_e2e_s(&run));
    }
    let last = train_command(&run, &settings).arg("--resume").output().unwrap();
    assert!(last.status.success(), "{cell}: {}", String::from_utf8_lossy(&last.stderr));

    assert_eq!(result(&straight), result(&run), "{cell}, {} kills", tally.kills);
    let (summary, expected) = (json(&run, "summary.json"), json(&straight, "summary.json"));
    for key in ["val", "val_raw", "test", "steps", "skipped_steps", "final_scale"] {
        assert_eq!(summary[key], expected[key], "{cell}: {key}");
    }
    assert!(summary["e2e_s"].as_f64().unwrap() >= e2e_s, "{cell}: time was lost");
    let of = |key: &str| summary[key].as_u64().unwrap();
    (tally.steps, tally.executed) = (of("steps"), of("executed_steps"));
    let most = tally.steps + tally.kills * CHECKPOINT_EVERY;
    assert!((tally.steps..=most).contains(&tally.executed), "{cell}: {} steps", tally.executed);
    let again = tally.executed - tally.steps;
    println!("{cell}.s{seed}: {} kills, {again} of {} steps again", tally.kills, tally.steps);
    tally
}

#[test]
fn killed_at_random_moments_a_matrix_is_the_same() {
    // The first cell has all there is, for the short form.
    let cells =
        ["amp-ema-gc", "fp32", "fp32-ema", "fp32-gc", "fp32-ema-gc", "amp", "amp-ema", "amp-gc"];
    let (kills, mut random) = (number(KILLS), Random(number(SEED)));
    let mut total = Tally::default();
    for (seed, cell) in (0..).flat_map(|seed| cells.map(|cell| (seed, cell))) {
        let left = kills - total.kills;
        if left == 0 {
            break;
        }
        let folder = tempfile::tempdir().unwrap();
        let tally = check(folder.path(), cell, seed, &mut random, left.min(KILLS_PER_RUN));
        total.kills += tally.kills;
        total.in_writes += tally.in_writes;
        total.at_start += tally.at_start;
        total.steps += tally.steps;
        total.executed += tally.executed;
    }
    println!(
        "{} kills: {} left half a checkpoint behind, {} came before an attempt's first step; {} \
         steps were made for {}",
        total.kills, total.in_writes, total.at_start, total.executed, total.steps
    );
}
