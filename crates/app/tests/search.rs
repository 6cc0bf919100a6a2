//! `tbps search`: what it finds is what `tbps eval` scores, and its index survives everything.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{error_line, json, smoke_data, tbps, trained};

fn search(run: &Path, arguments: &[&str]) -> Command {
    let mut search = tbps();
    search.arg("search").arg("--run").arg(run).args(arguments);
    search
}

/// The results of a search that must succeed, and what it said.
fn results(mut search: Command) -> (Value, String) {
    let output = search.arg("--json").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

/// `num` links to images of the smoke data, in folders below a new one.
fn gallery(folder: &Path, num: usize) -> PathBuf {
    let gallery = folder.join("gallery");
    let mut images = Vec::new();
    for part in fs::read_dir(smoke_data().join("imgs")).unwrap() {
        images.extend(fs::read_dir(part.unwrap().path()).unwrap().map(|e| e.unwrap().path()));
    }
    images.sort();
    for n in 0..num {
        let (from, place) = (&images[n % images.len()], gallery.join(format!("{}", n % 7)));
        fs::create_dir_all(&place).unwrap();
        let extension = from.extension().unwrap().to_string_lossy();
        fs::copy(from, place.join(format!("{n:05}.{extension}"))).unwrap();
    }
    gallery
}

/// Every caption of val with its person, as the annotation has them.
fn captions_of_val() -> Vec<(String, i64)> {
    let text = fs::read_to_string(smoke_data().join("reid_raw.json")).unwrap();
    let records: Vec<Value> = serde_json::from_str(&text).unwrap();
    let val = records.iter().filter(|record| record["split"] == "val");
    val.flat_map(|record| {
        let captions = record["captions"].as_array().unwrap().iter();
        captions.map(|c| (c.as_str().unwrap().to_owned(), record["id"].as_i64().unwrap()))
    })
    .collect()
}

#[test]
fn captions_find_their_people_at_the_rate_that_eval_reports() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &["ema.enabled=true"]);
    let mut eval = tbps();
    eval.arg("eval").arg("--run").arg(&run).args(["--split", "val", "--json"]);
    assert!(eval.arg(folder.path().join("scores.json")).output().unwrap().status.success());
    let scores = json(folder.path(), "scores.json");

    let captions = captions_of_val();
    let file = folder.path().join("queries.txt");
    let texts: Vec<&str> = captions.iter().map(|(text, _)| text.as_str()).collect();
    fs::write(&file, texts.join("\n")).unwrap();
    let queries = file.to_str().unwrap();
    let (found, _) = results(search(&run, &["--split", "val", "--queries", queries]));
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), captions.len());
    for (k, key) in [(1, "r1"), (5, "r5"), (10, "r10")] {
        let right = results.iter().zip(&captions).filter(|(result, (text, pid))| {
            assert_eq!(result["query"], text.as_str());
            let hits = result["hits"].as_array().unwrap();
            hits[..k].iter().any(|hit| hit["pid"] == *pid)
        });
        let rate = 100.0 * right.count() as f64 / captions.len() as f64;
        let expected = scores["t2i"][key].as_f64().unwrap();
        assert!((rate - expected).abs() < 1e-9, "{key}: {rate} is not {expected}");
    }
}

#[test]
fn a_killed_indexing_goes_on_and_an_update_touches_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &[]);
    let gallery = gallery(folder.path(), 3_000);
    fs::write(gallery.join("broken.png"), "no image").unwrap();
    fs::write(gallery.join("notes.txt"), "no image either").unwrap();
    let [cut, fresh] = ["cut.index", "fresh.index"].map(|name| folder.path().join(name));
    let on = |index: &Path| {
        let mut search = search(&run, &["--query", "a man in a red coat", "-k", "3"]);
        search.arg("--gallery").arg(&gallery).arg("--index").arg(index);
        search
    };
    let mut killed = on(&cut).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let journal = folder.path().join("cut.index.journal");
    while fs::metadata(&journal).map_or(0, |of| of.len()) < 50_000 {
        assert!(killed.try_wait().unwrap().is_none(), "it was done before it could be killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!cut.exists());

    let (resumed, said) = results(on(&cut));
    assert!(!said.contains(" 0 by an interrupted run"), "{said}");
    let (whole, said) = results(on(&fresh));
    assert!(said.contains("3000 images; 3000 embedded now"), "{said}");
    assert!(said.contains("unreadable: broken.png"), "{said}");
    assert_eq!(whole["unreadable"].as_array().unwrap().len(), 1);
    assert_eq!(resumed, whole);
    assert!(fs::read(&cut).unwrap() == fs::read(&fresh).unwrap(), "the indexes differ");

    // One image changes, one goes, one comes: two are embedded, and the result is as if made anew.
    let image = fs::read_dir(gallery.join("0")).unwrap().next().unwrap().unwrap().path();
    fs::copy(fs::read_dir(gallery.join("1")).unwrap().next().unwrap().unwrap().path(), &image)
        .unwrap();
    fs::rename(gallery.join("6").join(first_name(&gallery.join("6"))), gallery.join("new.bmp"))
        .unwrap();
    let (updated, said) = results(on(&cut));
    assert!(said.contains("3000 images; 2 embedded now"), "{said}");
    assert!(said.contains("2998 kept"), "{said}");
    let (again, said) = results({
        let mut anew = on(&fresh);
        anew.arg("--reindex");
        anew
    });
    assert!(said.contains("3000 embedded now"), "{said}");
    assert_eq!(updated, again);
    assert!(fs::read(&cut).unwrap() == fs::read(&fresh).unwrap(), "the indexes differ");
}

fn first_name(folder: &Path) -> String {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names.remove(0)
}

#[test]
fn an_image_finds_itself_first_and_the_sheet_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &[]);
    let gallery = gallery(folder.path(), 20);
    let path = format!("3/{}", first_name(&gallery.join("3")));
    let sheet = folder.path().join("sheet.html");
    let mut search = search(&run, &["-k", "5"]);
    search.arg("--gallery").arg(&gallery).arg("--image").arg(gallery.join(&path));
    let (found, said) = results({
        search.arg("--html").arg(&sheet).arg("--half");
        search
    });
    assert!(said.contains("20 images"), "{said}");
    let hits = found["results"][0]["hits"].as_array().unwrap();
    assert_eq!((hits.len(), &hits[0]["path"], &hits[0]["rank"]), (5, &path.into(), &1.into()));
    assert!((hits[0]["score"].as_f64().unwrap() - 1.0).abs() < 1e-3);
    let html = fs::read_to_string(sheet).unwrap();
    assert_eq!(html.matches("<img src=\"data:image/jpeg;base64,").count(), 5);
    assert!(!html.contains("http"), "the sheet refers to another place");
}

#[test]
fn bad_searches_are_refused_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &[]);
    let other = trained(folder.path(), "other", &["seed=1"]);
    let gallery = gallery(folder.path(), 3);
    let place = gallery.to_str().unwrap();
    let index = folder.path().join("one.index");
    let index = index.to_str().unwrap();
    let on = ["--gallery", place, "--index", index, "--query", "a man"];
    assert!(search(&run, &on).output().unwrap().status.success());
    let blank = folder.path().join("blank.txt");
    fs::write(&blank, "a man\n\na woman").unwrap();
    let blank = blank.to_str().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let [empty, absent] = [empty.path().to_path_buf(), folder.path().join("absent")]
        .map(|path| path.to_str().unwrap().to_owned());
    let table: [(&Path, &[&str], &str); 8] = [
        (&other, &on, "was made otherwise (weights"),
        (&run, &["--gallery", place, "--query", " "], "--query is blank"),
        (&run, &["--gallery", place, "--queries", blank], "line 2 of"),
        (&run, &["--gallery", &absent, "--query", "a"], "there is no folder"),
        (&run, &["--gallery", &empty, "--query", "a"], "holds no image"),
        (&run, &["--gallery", place], "--query"),
        (&run, &["--gallery", place, "--query", "a", "-k", "0"], "at least 1"),
        (&folder.path().join("no run"), &on, "holds no run"),
    ];
    for (run, arguments, told) in table {
        let output = search(run, arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        let last = text.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(told), "{arguments:?}: {text}");
    }
    let output = search(&run, &["--gallery", place, "--image", blank]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot decode"));
    let output = search(&run, &["--gallery", place, "--query", "a", "--html", "no folder/a.html"])
        .output()
        .unwrap();
    assert!(error_line(&output).contains("create it first"), "before any work");
}
