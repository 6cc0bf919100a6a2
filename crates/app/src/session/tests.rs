//! The clock test: a run is held up at one place, and the time lands on the clocks that
//! docs/PROTOCOL.md says and on no other.

use super::*;
use crate::hold::{self, HOLD, Place};
use serde_json::Value;
use std::path::PathBuf;
use tbps_data::synth;

/// More than anything else in the runs below takes, and less than [`HOLD`].
const LESS_S: f64 = 1.5;

/// A run of three steps and one evaluation, held up at `place`.
fn summary(folder: &Path, place: Place) -> Value {
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/smoke.toml");
    let root = format!("data.root={}", folder.join("data").display());
    let settings = ["train.epochs=1", "train.max_batches=3", "train.checkpoint_every_steps=0"];
    let few = ["optim.warmup_epochs=0.0", "eval.max_queries=8", "eval.max_images=8", &root];
    let settings: Vec<String> =
        [&settings[..], &few].concat().into_iter().map(str::to_owned).collect();
    let config = Config::load(&preset, &settings).unwrap();
    let out: PathBuf = folder.join(format!("{place:?}"));
    hold::arm(place);
    run_until(config, &out, DeviceName::Flex, false, |_| Ok(())).unwrap();
    serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn time_lands_on_its_own_clock_and_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synth::generate("smoke".parse().unwrap(), 0, &folder.join("data"), &|_, _| ()).unwrap();
    for (place, clock, before_best) in [
        (Place::Loader, "train_s", &["train_s_to_best", "e2e_s_to_best"][..]),
        (Place::Step, "train_s", &["train_s_to_best", "e2e_s_to_best"]),
        (Place::Evaluation, "eval_s", &["e2e_s_to_best"]),
        // `best` is written after the evaluation that selects it.
        (Place::Checkpoint, "checkpoint_s", &[]),
    ] {
        let summary = summary(folder, place);
        let clocks = ["train_s", "eval_s", "checkpoint_s", "warmup_s", "e2e_s"];
        for key in clocks.into_iter().chain(["train_s_to_best", "e2e_s_to_best"]) {
            let shown = summary[key].as_f64().unwrap();
            let held = key == clock || key == "e2e_s" || before_best.contains(&key);
            match held {
                true => assert!(shown >= HOLD.as_secs_f64(), "{place:?}: {key} is {shown}"),
                false => assert!(shown < LESS_S, "{place:?}: {key} is {shown}"),
            }
        }
        // With its own two seconds off, each clock is short again.
        let rest = summary["e2e_s"].as_f64().unwrap() - HOLD.as_secs_f64();
        assert!(rest < LESS_S, "{place:?}: {rest} s besides");
    }
}
