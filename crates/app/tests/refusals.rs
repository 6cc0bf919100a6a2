//! Bad input, end to end: each is refused with one line that says what is wrong, with exit status 2
//! for usage and configuration and 1 for everything else, before anything is trained or written.

mod support;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use support::{error_line, smoke_config, smoke_data, tbps, train, train_command};
use tempfile::TempDir;

const USAGE: i32 = 2;
const FAILURE: i32 = 1;

/// Runs a command that must be refused with `status` and a line that has `expected` in it.
fn refused(command: &mut Command, status: i32, expected: &str) {
    let output = command.output().unwrap();
    let line = error_line(&output);
    assert!(line.contains(expected), "expected `{expected}` in: {line}");
    assert_eq!(output.status.code(), Some(status), "{line}");
}

/// As [`refused`], of a training into `folder`, which must be left as it was.
fn refused_in(folder: &Path, command: &mut Command, status: i32, expected: &str) {
    let before = listing(folder);
    refused(command, status, expected);
    assert_eq!(listing(folder), before, "{expected}: something was left behind");
}

/// Every file and folder below `folder`, with the sizes of files.
fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(listing(&entry.path()));
            found.push((entry.path(), 0));
        } else {
            found.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Cuts a file to its first `len` bytes.
fn cut(path: &Path, len: u64) {
    fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn settings() {
    let folder = folder();
    for (setting, expected) in [
        ("optim.rate=1", "--set optim.rate=1: unknown key `optim.rate`; configs/base.toml lists"),
        ("optim.lr.x=1", "unknown key `optim.lr.x`"),
        ("lr", "--set lr: expected KEY=VALUE"),
        ("optim=1", "`optim` is a section"),
        ("optim.lr=fast", "`optim.lr` is a float, not the string \"fast\""),
        ("train.epochs=1.5", "`train.epochs` is a integer, not the float 1.5"),
        ("train.epochs=-1", "train.epochs: invalid value: integer `-1`"),
        ("scaler.growth_interval=5000000000", "scaler.growth_interval: invalid value"),
        ("precision=fp8", "precision: unknown variant `fp8`, expected `fp32` or `amp-fp16`"),
        ("eval.targets=['high']", "eval.targets[0]: invalid type"),
        ("eval.targets=[120]", "eval.targets = [120] must be percentages"),
        ("eval.targets=[nan]", "eval.targets = [nan] must be percentages"),
        ("eval.split=test", "eval.split = \"test\" must be val, or test with"),
        ("eval.batch_size=0", "eval.batch_size = 0 must be in 1 ..= 65536"),
        ("data.root=", "data.root = \"\" must be the folder that holds reid_raw.json and imgs/"),
        ("data.threads=0", "data.threads = 0 must be in 1 ..= 256"),
        ("data.threads=100000", "data.threads = 100000 must be in 1 ..= 256"),
        ("augment.pad_px=5000", "augment.pad_px = 5000 must be at most 4096"),
        ("augment.flip_probability=1.1", "augment.flip_probability = 1.1 must be in 0 ..= 1"),
        ("train.epochs=0", "train.epochs = 0 must be in 1 ..= 1000000"),
        ("train.batch_size=1", "train.batch_size = 1 must be in 2 ..= 65536"),
        ("optim.lr=-1", "optim.lr = -1.0 must be positive"),
        ("optim.lr=nan", "optim.lr = nan must be positive"),
        ("optim.weight_decay=inf", "optim.weight_decay = inf must be 0 or positive"),
        ("optim.eps=1e-60", "optim.eps = 1e-60 must be positive"),
        ("optim.clip_norm=1e300", "optim.clip_norm = 1e300 must be 0 or positive"),
        ("optim.warmup_epochs=2", "optim.warmup_epochs = 2.0 must be at least 0 and less than"),
        ("scaler.max_scale=inf", "scaler.max_scale = inf must be at least scaler.min_scale"),
        ("ema.decay=1", "ema.decay = 1.0 must be in 0 .. 1"),
        ("model.embed_dim=0", "model.embed_dim = 0 must be at least 1"),
        ("model.logit_scale.init=200", "model.logit_scale.init = 200 must be positive and at most"),
        ("model.vision.width=33", "model.vision.width = 33 must be a multiple of vision.heads"),
        ("model.vision.image_width=17", "model.vision.image_width = 17 must be a multiple of"),
        ("model.vision.image_height=8000", "model.vision.image_height = 8000 must be at most"),
        ("model.text.vocab_size=49409", "model.text.vocab_size = 49409 must be from 514"),
        ("model.text.vocab_size=513", "model.text.vocab_size = 513 must be from 514"),
        ("model.text.context_length=2", "model.text.context_length = 2 must be from 3 to 1024"),
        ("model.text.context_length=1025", "model.text.context_length = 1025 must be from 3"),
    ] {
        let mut command = train_command(&folder.path().join("runs/fp32.s0"), &[setting]);
        refused_in(folder.path(), &mut command, USAGE, expected);
    }
}

#[test]
fn config_files() {
    let (folder, configs) = (folder(), folder());
    for (name, content, expected) in [
        ("syntax.toml", &b"seed = 1\n\n[optim]\nlr = = 1\n"[..], "syntax.toml line 4: "),
        ("twice.toml", b"seed = 1\nseed = 2\n", "twice.toml line 2: duplicate key"),
        ("unknown.toml", b"[optim]\nrate = 1\n", "unknown.toml: unknown key `optim.rate`"),
        (
            "type.toml",
            b"[optim]\nlr = 'fast'\n",
            "type.toml: `optim.lr` is a float, not the string",
        ),
        ("range.toml", b"[optim]\nlr = 0\n", "range.toml: optim.lr = 0.0 must be positive"),
        ("section.toml", b"optim = 1\n", "section.toml: `optim` is a section"),
        ("bytes.toml", b"\xff\xfe", "cannot read"),
    ] {
        let path = configs.path().join(name);
        fs::write(&path, content).unwrap();
        let mut command = tbps();
        command.args(["train", "--config"]).arg(&path);
        command.arg("--out").arg(folder.path().join("run"));
        refused_in(folder.path(), &mut command, USAGE, expected);
    }
    for (path, expected) in [("absent.toml", "absent.toml: No such file"), ("", "Is a directory")] {
        let mut command = tbps();
        command.args(["train", "--config"]).arg(configs.path().join(path));
        command.arg("--out").arg(folder.path().join("run"));
        refused_in(folder.path(), &mut command, USAGE, expected);
    }
}

#[test]
fn command_lines() {
    for (args, expected) in [
        (&["fly"][..], "unrecognized subcommand 'fly'; see --help"),
        (&["train", "--fast"], "unexpected argument '--fast' found"),
        (&["train", "--out", "x"], "required arguments were not provided: --config <CONFIG>"),
        (&["eval", "--run", "x"], "required arguments were not provided: --split <SPLIT>"),
        (&["eval", "--run", "x", "--split", "train"], "invalid value 'train' for '--split"),
        (&["eval", "--features", "x", "--run", "y"], "cannot be used with"),
        (&["eval", "--features", "x", "--split", "val"], "cannot be used with"),
        (&["report", "x", "--lang", "fr"], "invalid value 'fr' for '--lang"),
    ] {
        refused(tbps().args(args), USAGE, expected);
    }
    let folder = folder();
    for (device, expected) in [
        ("tpu", "`tpu` is no device: expected flex or cuda[:index]"),
        ("cuda:first", "`cuda:first` is no device"),
        #[cfg(not(feature = "cuda"))]
        ("cuda", "no CUDA backend: build with `--features cuda`, or use --device flex"),
    ] {
        let mut command = train_command(&folder.path().join("run"), &[]);
        refused_in(folder.path(), command.args(["--device", device]), USAGE, expected);
    }
}

/// A copy of the data after `change`.
fn data(change: impl FnOnce(&Path)) -> TempDir {
    let data = folder();
    copy(smoke_data(), data.path());
    change(data.path());
    data
}

/// A copy of the data whose annotation is changed.
fn records(change: impl FnOnce(&mut Vec<Value>)) -> TempDir {
    data(|data| {
        let path = data.join("reid_raw.json");
        let mut records = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut records);
        fs::write(path, serde_json::to_vec(&records).unwrap()).unwrap();
    })
}

/// Training on `data` must be refused, and leave nothing behind.
fn refused_data(data: &TempDir, expected: &str) {
    let folder = folder();
    let setting = format!("data.root={}", data.path().display());
    let mut command = train_command(&folder.path().join("runs/fp32.s0"), &[&setting]);
    refused_in(folder.path(), &mut command, FAILURE, expected);
}

/// The images of one folder of the data with one extension, below the root.
fn images(data: &Path, extension: &str) -> Vec<PathBuf> {
    let all = listing(&data.join("imgs")).into_iter().map(|(path, _)| path);
    let mut images: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    let parent = images[0].parent().unwrap().to_owned();
    images.retain(|path| path.parent() == Some(&parent));
    images
}

#[test]
fn data_folders() {
    let whole = |_: &Path| ();
    let absent = data(whole);
    fs::remove_dir_all(absent.path()).unwrap();
    refused_data(&absent, "does not exist or is not a folder");

    let write = |content: &'static [u8]| {
        data(|data| fs::write(data.join("reid_raw.json"), content).unwrap())
    };
    refused_data(&data(|d| fs::remove_file(d.join("reid_raw.json")).unwrap()), "no reid_raw.json");
    let captions_only = data(|d| {
        fs::rename(d.join("reid_raw.json"), d.join("caption_all.json")).unwrap();
    });
    refused_data(&captions_only, "ask the authors of CUHK-PEDES for reid_raw.json");
    refused_data(&data(|d| fs::remove_dir_all(d.join("imgs")).unwrap()), "has no imgs/ folder");
    refused_data(&write(b"[{\"split\": \"\xff\"}]"), "is not UTF-8 at byte 12; save it as UTF-8");
    refused_data(&write(b"{}"), "is not a JSON list of records: invalid type: map");
    refused_data(&write(b"[{\"split\": "), "is not a JSON list of records: EOF while parsing");
    refused_data(&write(b"[]"), "has no record of split \"val\"");
}

#[test]
fn data_records() {
    for (field, bad, expected) in [
        ("split", json!("valid"), "record 0 (counted from 0): split: unknown variant `valid`"),
        ("captions", json!("A man."), "captions: invalid type: string \"A man.\", expected a seq"),
        ("captions", json!([]), "it has no caption; correct or remove it"),
        ("captions", json!(["  "]), "blank caption in split"),
        ("id", json!("one"), "id: invalid type: string \"one\", expected i64; correct or remove"),
        ("id", json!(-4), "id -4 is negative"),
        ("id", json!(1e30), "id: invalid type: floating point"),
        ("file_path", json!("../secret.png"), "\"../secret.png\" is not a path inside imgs/"),
        ("file_path", json!("/etc/passwd"), "\"/etc/passwd\" is not a path inside imgs/"),
        ("file_path", json!("new/lines\n.png"), "1 of 1 files missing"),
    ] {
        refused_data(&records(|records| records[0][field] = bad), expected);
    }
    let keep = |split: &'static str| move |record: &Value| record["split"] != split;
    refused_data(&records(|r| r[0] = json!(7)), "record 0 (counted from 0): invalid type: integer");
    refused_data(&records(|r| r[0] = json!({ "split": "val" })), "missing field `captions`");
    refused_data(
        &records(|r| r.push(r[1].clone())),
        "is already in record 1; correct or remove it",
    );
    refused_data(&records(|r| r.retain(keep("val"))), "no record of split \"val\"; choose another");
    refused_data(&records(|r| r.retain(keep("train"))), "no record of split \"train\"");

    let folder = folder();
    let mut command = train_command(&folder.path().join("run"), &["train.batch_size=60000"]);
    let expected = "batch_size = 60000, but the train split has only";
    refused_in(folder.path(), &mut command, FAILURE, expected);
}

#[test]
fn data_images() {
    let missing =
        data(|data| images(data, "png")[..3].iter().for_each(|f| fs::remove_file(f).unwrap()));
    let listed = images(smoke_data(), "png").len();
    refused_data(&missing, &format!("3 of {listed} files missing, first"));
    let torn = data(|data| cut(&images(data, "jpg")[0], 400));
    refused_data(
        &torn,
        "is cut short: its JPEG data has no end; download it again; `tbps data check",
    );
    let torn = data(|data| cut(&images(data, "png")[0], 100));
    refused_data(&torn, "cannot be decoded: unexpected end of file; download it again");
    let text = data(|data| fs::write(&images(data, "bmp")[0], "Not found").unwrap());
    refused_data(&text, "cannot be decoded: The image format could not be determined");
}

#[test]
fn data_check_lists_every_fault() {
    let faulty = data(|data| {
        fs::remove_file(&images(data, "png")[0]).unwrap();
        cut(&images(data, "jpg")[0], 400);
    });
    let output = tbps().args(["data", "check"]).arg(faulty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert!(error_line(&output).contains("2 fault(s) in"), "{output:?}");
    let listed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].contains("files missing") && lines[1].contains("cut short"), "{listed}");
    assert_eq!(lines.len(), 2);

    let mut command = tbps();
    command.args(["data", "check"]).arg(smoke_data()).args(["--json", "no folder/faults.json"]);
    refused(&mut command, USAGE, "cannot write no folder/faults.json: no folder is no folder");
}

/// A finished run of the smoke preset, to copy.
fn finished_run() -> &'static Path {
    static RUN: OnceLock<TempDir> = OnceLock::new();
    let folder = RUN.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let output = train(&folder.path().join("fp32.s0"), &[]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        folder
    });
    folder.path()
}

/// A folder with a copy of the finished run as `fp32.s0`, changed.
fn run(change: impl FnOnce(&Path)) -> TempDir {
    let folder = folder();
    copy(finished_run(), folder.path());
    change(&folder.path().join("fp32.s0"));
    folder
}

fn resume(folder: &TempDir, settings: &[&str]) -> Command {
    let mut command = train_command(&folder.path().join("fp32.s0"), settings);
    command.arg("--resume");
    command
}

#[test]
fn output_directories() {
    let run = run(|_| ());
    let there = run.path().join("fp32.s0");
    let expected = "already holds a run: add --resume to go on with it, or choose another --out";
    refused_in(run.path(), &mut train_command(&there, &[]), USAGE, expected);
    let expected = "holds a run with another configuration (compare its config.toml)";
    refused_in(run.path(), &mut resume(&run, &["seed=1"]), USAGE, expected);

    let expected = "is not empty and holds no run: choose another --out";
    refused_in(run.path(), &mut train_command(run.path(), &[]), USAGE, expected);
    refused_in(run.path(), train_command(run.path(), &[]).arg("--resume"), USAGE, expected);
    for below in ["fp32.s0/config.toml", "fp32.s0/config.toml/a/b"] {
        let mut command = train_command(&run.path().join(below), &[]);
        let expected = "config.toml: Not a directory (os error 20); choose another --out";
        refused_in(run.path(), &mut command, USAGE, expected);
    }
    if cfg!(target_os = "linux") {
        let mut command = train_command(Path::new("/proc/runs/fp32.s0"), &[]);
        refused(&mut command, USAGE, "cannot write into /proc: ");
    }
}

#[test]
fn disks_that_are_too_small() {
    // Two petabytes: no disk is large enough, and the parameters are never made.
    let folder = folder();
    let sizes = ["width=65536", "layers=1024", "heads=64"];
    let towers = ["vision", "text"];
    let settings: Vec<String> =
        towers.iter().flat_map(|tower| sizes.map(|size| format!("model.{tower}.{size}"))).collect();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut command = train_command(&folder.path().join("runs/fp32.s0"), &settings);
    refused_in(folder.path(), &mut command, FAILURE, "runs/fp32.s0 need 4");
}

#[test]
fn damaged_runs() {
    let unfinished = |run: &Path| fs::remove_file(run.join("summary.json")).unwrap();
    for (summary, expected) in [
        ("{", "summary.json is damaged: remove it to go on from the last checkpoint: EOF"),
        ("{\"status\": \"perfect\"}", "summary.json is damaged"),
        ("{\"status\": \"oom\", \"message\": \"try less\"}", "is over, oom: try less; train again"),
    ] {
        let run = run(|run| fs::write(run.join("summary.json"), summary).unwrap());
        refused_in(run.path(), &mut resume(&run, &[]), FAILURE, expected);
    }
    let other_data = records(|records| records[0]["captions"] = json!(["A woman."]));
    let same_path = run(|run| {
        unfinished(run);
        let path = run.join("run.json");
        let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record["dataset"]["num_bytes"] = json!(1);
        fs::write(path, record.to_string()).unwrap();
    });
    drop(other_data);
    let expected = "the data has changed since the run in";
    refused_in(same_path.path(), &mut resume(&same_path, &[]), FAILURE, expected);
    let no_json = run(|run| {
        unfinished(run);
        fs::write(run.join("run.json"), "{").unwrap();
    });
    let expected = "run.json is damaged: remove it to have it written again";
    refused_in(no_json.path(), &mut resume(&no_json, &[]), FAILURE, expected);
    let short_log = run(|run| {
        unfinished(run);
        cut(&run.join("metrics.jsonl"), 10);
    });
    let expected = "metrics.jsonl has 10 bytes where the checkpoint counts";
    refused_in(short_log.path(), &mut resume(&short_log, &[]), FAILURE, expected);
}

#[test]
fn damaged_checkpoints() {
    let torn = run(|run| {
        fs::remove_file(run.join("summary.json")).unwrap();
        cut(&run.join("checkpoints/last/weights.safetensors"), 100);
    });
    let output = resume(&torn, &[]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.lines().count(), 1);
    let damage = "last is damaged (weights.safetensors does not have the SHA-256 of manifest.json)";
    assert!(said.starts_with("warning: ") && said.contains(damage), "{said}");
    let [again, first] = [torn.path(), finished_run()].map(|folder| {
        let path = folder.join("fp32.s0/checkpoints/last/weights.safetensors");
        fs::read(path).unwrap()
    });
    assert!(again == first, "going on from the predecessor ends in other weights");

    for (file, content) in [
        ("weights.safetensors", "torn"),
        ("manifest.json", "{}"),
        ("manifest.json", "{\"../../config.toml\": \"0\"}"),
        ("manifest.json", ""),
    ] {
        let damaged = run(|run| {
            fs::remove_file(run.join("summary.json")).unwrap();
            for place in ["last", "last.previous"] {
                fs::write(run.join("checkpoints").join(place).join(file), content).unwrap();
            }
        });
        let expected = "no whole checkpoint is left: train into another --out";
        refused_in(damaged.path(), &mut resume(&damaged, &[]), FAILURE, expected);
    }
}

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
fn eval_features(changed: &Tensors, without: &str) -> (TempDir, Command) {
    let mut tensors = changed.clone();
    for good in [
        floats("image_features", [2, 2], &[1.0, 0.0, 0.0, 1.0]),
        floats("text_features", [2, 2], &[1.0, 0.1, 0.1, 1.0]),
        integers("image_pids", &[1, 2]),
        integers("text_pids", &[1, 2]),
    ] {
        tensors.extend(good.into_iter().filter(|good| changed.iter().all(|t| t.0 != good.0)));
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
    let (_folder, mut command) = eval_features(&vec![], "");
    assert!(command.output().unwrap().status.success());
    for name in ["image_features", "text_features", "image_pids", "text_pids"] {
        let (_folder, mut command) = eval_features(&vec![], name);
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
        let (_folder, mut command) = eval_features(&changed, "");
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

#[test]
fn data_commands() {
    let folder = folder();
    let out = folder.path().join("out");
    let image = &images(smoke_data(), "png")[0];
    for (size, status, image, expected) in [
        ("384", USAGE, image, "--image-size: image size = 384: expected HEIGHTxWIDTH"),
        ("0x10", USAGE, image, "--image-size: image size = 0x10: expected HEIGHTxWIDTH"),
        ("10x9999", USAGE, image, "with sides from 1 to 4096, such as 384x128"),
        ("48x16", FAILURE, &smoke_config(), "smoke.toml: The image format could not be"),
        ("48x16", FAILURE, &folder.path().join("absent"), "absent: No such file"),
    ] {
        let mut command = tbps();
        command.args(["data", "pixels"]).arg(image).args(["--image-size", size, "--out"]).arg(&out);
        refused_in(folder.path(), &mut command, status, expected);
    }
    let mut command = tbps();
    command.args(["data", "pixels", "--image-size", "48x16"]).arg(image);
    refused_in(folder.path(), command.arg("--out").arg(folder.path()), USAGE, "it is a folder");

    refused(tbps().args(["data", "tokens"]), USAGE, "give a TEXT, or --file FILE with a text on");
    let latin = folder.path().join("latin.txt");
    fs::write(&latin, b"caf\xe9\n").unwrap();
    refused(tbps().args(["data", "tokens", "--file"]).arg(latin), FAILURE, "latin.txt: stream did");

    let synth = |preset: &str, out: &Path| {
        let mut command = tbps();
        command.args(["data", "synth", "--preset", preset, "--out"]).arg(out);
        command
    };
    let expected = "--preset: preset = huge: expected smoke, demo or cuhk-size";
    refused_in(folder.path(), &mut synth("huge", &out), USAGE, expected);
    let expected = "already holds files; choose a new folder or empty this one";
    refused_in(folder.path(), &mut synth("smoke", folder.path()), FAILURE, expected);
    let below_a_file = folder.path().join("latin.txt/data");
    refused_in(folder.path(), &mut synth("smoke", &below_a_file), FAILURE, "Not a directory");
    refused(tbps().args(["data", "check"]).arg(&out), FAILURE, "does not exist or is not a folder");
}

#[test]
fn reports() {
    let folder = folder();
    let report = |path: &Path| {
        let mut command = tbps();
        command.arg("report").arg(path);
        command
    };
    let expected = "give the directory that holds <cell>.s<seed>, such as fp32.s0";
    refused_in(folder.path(), &mut report(folder.path()), FAILURE, expected);
    refused(&mut report(&folder.path().join("absent")), FAILURE, "absent: No such file");
    refused(&mut report(&smoke_config()), FAILURE, "smoke.toml: Not a directory");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    // More than a pipe holds.
    let folder = folder();
    let texts = folder.path().join("texts.txt");
    fs::write(&texts, "a man in a red coat\n".repeat(5_000)).unwrap();
    let mut command = tbps();
    command.args(["data", "tokens", "--file"]).arg(texts);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
