//! Weights of every origin, end to end: looked at, imported, exported, embedded with, trained from.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use flate2::read::GzDecoder;
use safetensors::SafeTensors;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::{error_line, json, metrics, smoke_data, tbps, train, train_command, trained};
use tbps_model::weights::{self, Recipe};
use tempfile::TempDir;

/// The same model in every format; see the README beside them.
const FILES: [&str; 6] = [
    "open_clip_model.safetensors",
    "open_clip.pt",
    "open_clip_checkpoint.pt",
    "hugging_face_model.safetensors",
    "hugging_face_pytorch_model.bin",
    "openai.pt",
];

/// Settings of the fixtures' model at another image size than theirs.
const MODEL: [&str; 14] = [
    "model.embed_dim=32",
    "model.vision.image_height=48",
    "model.vision.image_width=32",
    "model.vision.patch_size=16",
    "model.vision.width=64",
    "model.vision.layers=2",
    "model.vision.heads=1",
    "model.text.vocab_size=514",
    "model.text.context_length=16",
    "model.text.width=64",
    "model.text.layers=2",
    "model.text.heads=1",
    "model.logit_scale.learnable=true",
    "train.epochs=1",
];

/// The fixtures, unpacked under names that say nothing.
fn files() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures/clip_sources");
    let unpack = |(number, name): (usize, &&str)| {
        let file = fs::File::open(source.join(format!("{name}.gz"))).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        let path = folder.path().join(format!("weights-{number}"));
        fs::write(&path, bytes).unwrap();
        path
    };
    let paths = FILES.iter().enumerate().map(unpack).collect();
    (folder, paths)
}

/// Runs `tbps` to its end.
fn run(words: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = tbps();
    command.args(words);
    for (flag, path) in paths {
        command.args((!flag.is_empty()).then_some(flag)).arg(path);
    }
    command.output().unwrap()
}

#[track_caller]
fn done(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_is_described() {
    let (folder, files) = files();
    let report = folder.path().join("report.json");
    let output = run(&["weights", "inspect"], &[("", &files[5]), ("--json", &report)]);
    done(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "format      TorchScript archive, names of open_clip / OpenAI, float16 and float32\n",
        "image       32x32, patch 16, width 64, 2 layers, 1 heads\n",
        "activation  quick-gelu (assumed: the file does not say)\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let report = json(folder.path(), "report.json");
    assert_eq!(report["model"]["text"]["vocab_size"], 514);
    assert_eq!(report["says_its_model"], false);
    assert_eq!(report["published_as"], serde_json::Value::Null);
    let shapes = report["tensors"].as_array().unwrap().iter().map(|t| &t["shape"]);
    let sizes =
        shapes.map(|s| s.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).product::<u64>());
    assert_eq!(report["num_parameters"], sizes.sum::<u64>());
}

#[test]
fn imported_and_exported_is_the_same_again() {
    let (folder, files) = files();
    let [imported, exported] = ["imported", "exported.safetensors"].map(|n| folder.path().join(n));
    done(&run(&["weights", "import"], &[("", &files[5]), ("--out", &imported)]));
    let source = &json(&imported, "import.json")["source"];
    assert_eq!(source["container"], "TorchScript archive");
    let ours = imported.join("weights.safetensors");
    done(&run(&["weights", "export"], &[("--weights", &ours), ("--out", &exported)]));
    let [exported, original] = [&exported, &files[0]].map(|path| fs::read(path).unwrap());
    let [exported, original] =
        [&exported, &original].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    assert_eq!(exported.len(), original.len());
    for (name, tensor) in original.tensors() {
        assert_eq!(exported.tensor(&name).unwrap(), tensor, "{name}");
    }
}

#[test]
fn every_format_gives_the_same_features() {
    let (folder, files) = files();
    let texts = folder.path().join("texts.txt");
    fs::write(&texts, "A woman in a red coat.\n\nA man with a bag, seen from behind\n").unwrap();
    let images = smoke_data().join("imgs");
    let images = fs::read_dir(images).unwrap().map(|e| e.unwrap().path()).min().unwrap();
    let embed = |file: &Path| {
        let out = folder.path().join("features");
        let words = ["embed", "--image-size", "48x32"];
        let paths =
            [("--weights", file), ("--images", &images), ("--texts", &texts), ("--out", &out)];
        done(&run(&words, &paths));
        fs::read(out).unwrap()
    };
    let first = embed(&files[0]);
    let first = SafeTensors::deserialize(&first).unwrap();
    let num_images = fs::read_dir(&images).unwrap().count();
    assert_eq!(first.tensor("image_features").unwrap().shape(), [num_images, 32]);
    assert_eq!(first.tensor("text_features").unwrap().shape(), [3, 32]);
    for file in &files[1..] {
        let other = embed(file);
        let other = SafeTensors::deserialize(&other).unwrap();
        for name in ["image_features", "text_features"] {
            assert_eq!(other.tensor(name).unwrap(), first.tensor(name).unwrap(), "{name}");
        }
    }
}

#[test]
fn training_starts_from_any_of_them_at_the_same_loss() {
    let (folder, files) = files();
    let mut losses = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let weights = format!("weights.file={}", file.display());
        let settings: Vec<&str> = MODEL.into_iter().chain([weights.as_str()]).collect();
        let run = trained(folder.path(), &format!("run-{number}"), &settings);
        losses.push(metrics(&run)[0]["loss"].as_f64().unwrap());
        let record = &json(&run, "run.json")["weights"];
        assert_eq!(record["pos_embed_from"], serde_json::json!([2, 2]));
        assert_eq!(record["pos_embed_to"], serde_json::json!([3, 2]));
        assert_eq!(record["pos_embed_resize"], "bicubic-antialias");
    }
    assert!(losses.iter().all(|loss| *loss == losses[0]), "{losses:?}");
    let random = trained(folder.path(), "random", &MODEL);
    assert_ne!(metrics(&random)[0]["loss"].as_f64().unwrap(), losses[0]);
}

#[test]
fn a_resumed_run_needs_the_file_no_more() {
    let (folder, files) = files();
    let weights = format!("weights.file={}", files[0].display());
    let settings: Vec<&str> = MODEL.into_iter().chain([weights.as_str()]).collect();
    let run = trained(folder.path(), "run", &settings);
    let [before, record] = ["summary.json", "run.json"].map(|file| json(&run, file));
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_file(&files[0]).unwrap();
    let output = train_command(&run, &settings).arg("--resume").output().unwrap();
    done(&output);
    let after = json(&run, "summary.json");
    assert_eq!(after["best_weights_sha256"], before["best_weights_sha256"]);
    assert_eq!(json(&run, "run.json")["weights"], record["weights"]);
}

#[test]
fn another_activation_is_refused_unless_it_is_asked_for() {
    let (folder, files) = files();
    let imported = folder.path().join("imported");
    let words = ["weights", "import", "--activation", "gelu"];
    done(&run(&words, &[("", &files[0]), ("--out", &imported)]));
    let file = imported.join("weights.safetensors");
    let setting = format!("weights.file={}", file.display());
    let settings: Vec<&str> = MODEL.into_iter().chain([setting.as_str()]).collect();
    let out = folder.path().join("run");
    let output = train(&out, &settings);
    assert_eq!(
        error_line(&output),
        format!(
            "{}: these weights were made with activation = \"gelu\", and model.activation is \
             \"quick-gelu\"; change the setting, or allow it with weights.allow_mismatch = true",
            file.display()
        )
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(!out.exists());
    let allowed: Vec<&str> = settings.into_iter().chain(["weights.allow_mismatch=true"]).collect();
    let record = &json(&trained(folder.path(), "run", &allowed), "run.json")["weights"];
    assert_eq!(record["stored_activation"], "gelu");
    assert!(record["mismatch"].as_str().unwrap().starts_with("these weights were made with"));
}

#[test]
fn another_preprocessing_is_refused_unless_it_is_asked_for() {
    let (folder, files) = files();
    let read = weights::read(&fs::read(&files[0]).unwrap()).unwrap();
    let recipe =
        Recipe { model: read.config().unwrap(), pixel_mean: [0.5; 3], pixel_std: [0.5; 3] };
    let file = folder.path().join("other.safetensors");
    fs::write(&file, weights::serialize(&read.tensors, &recipe).unwrap()).unwrap();
    let setting = format!("weights.file={}", file.display());
    let settings: Vec<&str> = MODEL.into_iter().chain([setting.as_str()]).collect();
    let output = train(&folder.path().join("run"), &settings);
    assert_eq!(
        error_line(&output),
        format!(
            "{}: these weights were made for pixels of mean [0.5, 0.5, 0.5] and deviation [0.5, \
             0.5, 0.5], and tbps gives [0.48145467, 0.4578275, 0.40821072] and [0.26862955, \
             0.2613026, 0.2757771]; change the setting, or allow it with weights.allow_mismatch = \
             true",
            file.display()
        )
    );
    let allowed: Vec<&str> = settings.into_iter().chain(["weights.allow_mismatch=true"]).collect();
    let record = &json(&trained(folder.path(), "run", &allowed), "run.json")["weights"];
    assert!(record["mismatch"].as_str().unwrap().contains("for pixels of mean [0.5"));
}

#[test]
fn refusals_name_the_file() {
    let (folder, files) = files();
    let page = folder.path().join("ViT-B-16.pt");
    fs::write(&page, "<!DOCTYPE html><html>sign in</html>").unwrap();
    let cut = folder.path().join("cut.pt");
    fs::write(&cut, &fs::read(&files[5]).unwrap()[..100_000]).unwrap();
    for (file, expected) in [
        (&page, "this is an HTML page and not the weights"),
        (&cut, "the file is cut off (or has been appended to): download it again"),
        (&folder.path().join("absent"), "cannot read "),
    ] {
        let out = folder.path().join("out");
        let output = run(&["weights", "import"], &[("", file), ("--out", &out)]);
        let line = error_line(&output);
        assert!(line.contains(&file.display().to_string()) && line.contains(expected), "{line}");
        assert_eq!(output.status.code(), Some(1));
        assert!(!out.exists(), "{line}");
    }
}
