//! The clock test: a run is held up at one place, and the time lands on the clocks that
//! docs/PROTOCOL.md says and on no other. And what a signal stops.

use super::*;
use crate::hold::{self, Place};
use serde_json::Value;
use std::fs;
use std::time::Duration;
use tbps_data::synth;

/// How long a run is held up.
const HOLD: Duration = Duration::from_secs(2);
/// More than anything else in the runs below takes, and less than [`HOLD`].
const LESS_S: f64 = 1.5;

/// A folder with the smoke data set, and a configuration of three steps and an evaluation an epoch.
fn prepared(epochs: usize) -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    synth::generate("smoke".parse().unwrap(), 0, &data, &|_, _| ()).unwrap();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/smoke.toml");
    let settings = [
        format!("data.root={}", data.display()),
        format!("train.epochs={epochs}"),
        "train.max_batches=3".to_owned(),
        "train.checkpoint_every_steps=0".to_owned(),
        "optim.warmup_epochs=0.0".to_owned(),
        "eval.max_queries=8".to_owned(),
        "eval.max_images=8".to_owned(),
    ];
    (folder, Config::load(&preset, &settings).unwrap())
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The keys of a summary that a hold must be on, and those that it must not be on.
const CLOCKS: [&str; 7] =
    ["train_s", "eval_s", "checkpoint_s", "warmup_s", "e2e_s", "train_s_to_best", "e2e_s_to_best"];

/// Holds a run up at `place` and says what is wrong with its clocks, if anything is: the hold must be
/// on those of `held`, and on no other.
fn fault(config: &Config, out: &Path, place: Place, held: &[&str]) -> Option<String> {
    hold::arm(place, || std::thread::sleep(HOLD));
    run_until(config.clone(), out, DeviceName::Flex, false, |_| Ok(())).unwrap();
    let summary = json(&out.join("summary.json"));
    let of = |key: &str| summary[key].as_f64().unwrap();
    let is_right = |key: &str| match held.contains(&key) {
        true => (HOLD.as_secs_f64()..HOLD.as_secs_f64() + LESS_S).contains(&of(key)),
        false => of(key) < LESS_S,
    };
    let wrong = CLOCKS.into_iter().find(|key| !is_right(key))?;
    Some(format!("held up at {place:?}, {wrong} is {} s", of(wrong)))
}

#[test]
fn time_lands_on_its_own_clock_and_end_to_end() {
    let _alone = hold::alone();
    let (folder, config) = prepared(1);
    for (place, held) in [
        (Place::Loader, &["train_s", "e2e_s", "train_s_to_best", "e2e_s_to_best"][..]),
        (Place::Step, &["train_s", "e2e_s", "train_s_to_best", "e2e_s_to_best"]),
        (Place::Evaluation, &["eval_s", "e2e_s", "e2e_s_to_best"]),
        // `best` is written after the evaluation that selects it.
        (Place::Checkpoint, &["checkpoint_s", "e2e_s"]),
    ] {
        // A busy machine or disk may hold a run up as well; a mistake is there each time.
        let out = |attempt| folder.path().join(format!("{place:?}-{attempt}"));
        let faults = (0..3).map(|attempt| fault(&config, &out(attempt), place, held));
        let faults: Vec<String> = faults.map_while(|fault| fault).collect();
        assert!(faults.len() < 3, "{faults:?}");
    }
}

#[test]
fn a_signal_lets_the_step_or_the_evaluation_finish_and_saves() {
    let _alone = hold::alone();
    let (folder, config) = prepared(2);
    for (place, step, epoch, batch) in [(Place::Step, 1, 1, 1), (Place::Evaluation, 3, 2, 0)] {
        let out = folder.path().join(format!("{place:?}"));
        let stop = |interrupter: &Interrupter| {
            let interrupter = interrupter.clone();
            hold::arm(place, move || interrupter.stop(Some("interrupted")));
            Ok(())
        };
        let error = run_until(config.clone(), &out, DeviceName::Flex, false, stop).unwrap_err();
        assert_eq!(Failure::exit_status(&error), INTERRUPTED, "{error:#}");
        assert!(error.to_string().starts_with(&format!("interrupted at step {step};")), "{error}");
        let state = json(&out.join("checkpoints/last/state.json"));
        let saved = ["step", "epoch", "batch"].map(|key| state[key].as_u64().unwrap());
        assert_eq!(saved, [step, epoch, batch], "{place:?}");

        run_until(config.clone(), &out, DeviceName::Flex, true, |_| Ok(())).unwrap();
        let summary = json(&out.join("summary.json"));
        assert_eq!((&summary["steps"], &summary["executed_steps"]), (&6.into(), &6.into()));
    }
}
