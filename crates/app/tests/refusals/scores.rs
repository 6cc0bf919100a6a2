//! `tbps eval` of what cannot be scored.

use crate::runs::run;
use crate::support::{smoke_config, smoke_data, tbps};
use crate::{FAILURE, USAGE, copy, cut, folder, refused};
use safetensors::tensor::{Dtype, TensorView};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn eval(run: &TempDir) -> Command {
    let mut command = tbps();
    command.args(["eval", "--split", "val", "--run"]).arg(run.path().join("fp32.s0"));
    command
}

#[test]
fn runs_without_a_score() {
    let whole = run(|_| ());
    let expected = "was trained without EMA: leave --which out";
    refused(eval(&whole).args(["--which", "ema"]), USAGE, expected);
    let json = whole.path().join("no folder/scores.json");
    refused(eval(&whole).arg("--json").arg(json), USAGE, "no folder is no folder; create it first");
    refused(eval(&whole).arg("--ranks").arg(whole.path()), USAGE, "it is a folder; name a file");

    refused(&mut eval(&folder()), USAGE, "holds no run (no config.toml in it)");
    let none = run(|run| fs::remove_dir_all(run.join("checkpoints")).unwrap());
    refused(&mut eval(&none), FAILURE, "has no best checkpoint yet: train it further");
    let edited = run(|run| {
        let path = run.join("config.toml");
        let text = fs::read_to_string(&path).unwrap().replace("embed_dim = 32", "embed_dim = 64");
        fs::write(path, text).unwrap();
    });
    refused(&mut eval(&edited), USAGE, "config.toml is not what the best checkpoint was trained");
    let moved = run(|run| {
        let path = run.join("config.toml");
        let text = fs::read_to_string(&path).unwrap().replace("root = \"", "root = \"/absent");
        fs::write(path, text).unwrap();
    });
    refused(&mut eval(&moved), FAILURE, "does not exist or is not a folder");
    let broken = run(|run| fs::write(run.join("config.toml"), "seed").unwrap());
    refused(&mut eval(&broken), USAGE, "config.toml line 1: ");
}

#[test]
fn a_torn_best_checkpoint_gives_way_with_a_warning() {
    let best = |run: &Path, name: &str| run.join("checkpoints").join(name);
    let tear = |place: &Path| cut(&place.join("weights.safetensors"), 100);
    let torn = run(|run| {
        copy(&best(run, "best"), &best(run, "best.previous"));
        tear(&best(run, "best"));
    });
    let output = eval(&torn).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("warning: ") && said.contains("best checkpoint before it"), "{said}");
    assert_eq!(output.stdout, eval(&run(|_| ())).output().unwrap().stdout);

    let lost = run(|run| {
        copy(&best(run, "best"), &best(run, "best.previous"));
        ["best", "best.previous"].iter().for_each(|name| tear(&best(run, name)));
    });
    refused(&mut eval(&lost), FAILURE, "no whole checkpoint is left");
}

/// Tensors of a features file: name, type, shape and bytes.
type Tensors = Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)>;

fn floats(name: &'static str, shape: [usize; 2], values: &[f32]) -> Tensors {
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    vec![(name, Dtype::F32, shape.to_vec(), bytes)]
}

fn integers(name: &'static str, values: &[i64]) -> Tensors {
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    vec![(name, Dtype::I64, vec![values.len()], bytes)]
}

/// `tbps eval` of two images and two texts, with `changed` in the place of what has its name.
fn eval_features(changed: Tensors, without: &str) -> (TempDir, Command) {
    let mut tensors = changed;
    for good in [
        floats("image_features", [2, 2], &[1.0, 0.0, 0.0, 1.0]),
        floats("text_features", [2, 2], &[1.0, 0.1, 0.1, 1.0]),
        integers("image_pids", &[1, 2]),
        integers("text_pids", &[1, 2]),
    ] {
        if tensors.iter().all(|tensor| tensor.0 != good[0].0) {
            tensors.extend(good);
        }
    }
    tensors.retain(|tensor| tensor.0 != without);
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    let folder = folder();
    let path = folder.path().join("features.safetensors");
    fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    let mut command = tbps();
    command.args(["eval", "--features"]).arg(path);
    (folder, command)
}

#[test]
fn features() {
    let (_folder, mut command) = eval_features(vec![], "");
    assert!(command.output().unwrap().status.success());
    for name in ["image_features", "text_features", "image_pids", "text_pids"] {
        let (_folder, mut command) = eval_features(vec![], name);
        refused(&mut command, FAILURE, &format!("features.safetensors: it has no {name}, only ["));
    }
    let flat = vec![("text_features", Dtype::F32, vec![2], vec![0; 8])];
    let deep = vec![("text_pids", Dtype::I64, vec![2, 1], vec![0; 16])];
    let double = vec![("text_features", Dtype::F64, vec![2, 2], vec![0; 32])];
    let narrow = vec![("text_pids", Dtype::I32, vec![2], vec![0; 8])];
    for (changed, expected) in [
        (double, "text_features is F64, not F32"),
        (narrow, "text_pids is I32, not I64"),
        (flat, "text_features has shape [2], not 2 dimension(s)"),
        (deep, "text_pids has shape [2, 1], not 1 dimension(s)"),
        (
            floats("text_features", [2, 1], &[1.0, 2.0]),
            "image_features have 2 dimensions and text_features 1: both must come from one",
        ),
        (floats("text_features", [0, 2], &[]), "text_features is empty, [0, 2]"),
        (integers("text_pids", &[1]), "text_features has 2 rows, but text_pids 1: give one pid"),
        (
            floats("image_features", [2, 2], &[1.0, 0.0, f32::NAN, 1.0]),
            "image_features is NaN in row 1, column 0: the model has diverged or the file is",
        ),
        (
            floats("text_features", [2, 2], &[1.0, f32::INFINITY, 0.0, 1.0]),
            "text_features is inf in row 0, column 1",
        ),
        (integers("text_pids", &[8, 9]), "check that both sides use the same pid numbering"),
    ] {
        let (_folder, mut command) = eval_features(changed, "");
        refused(&mut command, FAILURE, expected);
    }
    for (file, expected) in [
        (smoke_config(), "smoke.toml: it is no whole safetensors file: "),
        (smoke_data().join("absent"), "absent: No such file"),
        (smoke_data().to_owned(), "Is a directory"),
    ] {
        refused(tbps().args(["eval", "--features"]).arg(file), FAILURE, expected);
    }
}
