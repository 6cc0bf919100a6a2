//! Data sets with something wrong in them, and the commands about data.

use crate::support::{error_line, smoke_config, smoke_data, tbps, train_command};
use crate::{FAILURE, USAGE, copy, cut, folder, listing, refused, refused_in};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A copy of the data after `change`.
pub(super) fn data(change: impl FnOnce(&Path)) -> TempDir {
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
pub(super) fn images(data: &Path, extension: &str) -> Vec<PathBuf> {
    let all = listing(&data.join("imgs")).into_iter().map(|(path, _)| path);
    let mut images: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    let parent = images[0].parent().unwrap().to_owned();
    images.retain(|path| path.parent() == Some(&parent));
    images
}

#[test]
fn bad_folders() {
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
    refused_data(&write(b"[]"), "has no record of split \"train\"");
}

#[test]
fn bad_records() {
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
    refused_data(&records(|r| r[0] = json!(7)), "record 0 (counted from 0): invalid type: integer");
    refused_data(&records(|r| r[0] = json!({ "split": "val" })), "missing field `captions`");
    refused_data(
        &records(|r| r.push(r[1].clone())),
        "is already in record 1; correct or remove it",
    );
    refused_data(
        &records(|r| r.retain(|record| record["split"] != "train")),
        "no record of split \"train\"",
    );

    let folder = folder();
    let mut command = train_command(&folder.path().join("run"), &["train.batch_size=60000"]);
    let expected = "batch_size = 60000, but the train split has only";
    refused_in(folder.path(), &mut command, FAILURE, expected);
}

#[test]
fn bad_images() {
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

#[test]
fn bad_commands() {
    let folder = folder();
    let out = folder.path().join("out");
    let image = &images(smoke_data(), "png")[0];
    for (size, status, image, expected) in [
        ("384", USAGE, image, "image size = 384: expected HEIGHTxWIDTH"),
        ("0x10", USAGE, image, "image size = 0x10: expected HEIGHTxWIDTH"),
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

    let cache = |size: &str, out: &Path| {
        let mut command = tbps();
        command.args(["data", "cache"]).arg(smoke_data()).args(["--image-size", size, "--out"]);
        command.arg(out);
        command
    };
    let expected = "image size = 48: expected HEIGHTxWIDTH with sides from 1 to 4096";
    refused_in(folder.path(), &mut cache("48", &out), USAGE, expected);
    let file = smoke_data().join("reid_raw.json");
    let expected = format!("cannot access {}: File exists", file.display());
    refused(&mut cache("48x16", &file), FAILURE, &expected);

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
fn a_kept_check_is_taken_until_the_data_change() {
    let (data, runs) = (data(|_| ()), folder());
    let check = || {
        let mut command = tbps();
        command.args(["data", "check"]).arg(data.path()).arg("--keep").arg(runs.path());
        command
    };
    let said = |command: &mut std::process::Command| {
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(said(&mut check()).ends_with("images, no fault\n"));
    assert!(said(&mut check()).ends_with("as it was when no fault was found\n"));
    fs::remove_file(images(data.path(), "png").pop().unwrap()).unwrap();
    refused(&mut check(), FAILURE, "1 fault(s) in ");
}
