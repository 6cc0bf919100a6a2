//! Updates touch what changed and nothing else; a build that was cut short goes on.

use super::*;
use crate::index::{Precision, journal};
use tbps_metrics::retrieval::Rows;

/// A file's feature is its length and first byte; a file that begins with `!` is unreadable.
#[derive(Default)]
struct Fake {
    seen: Vec<String>,
    /// Fails once it has made so many.
    most: Option<usize>,
}

impl Maker for Fake {
    fn features(&mut self, files: &[PathBuf]) -> Result<Vec<Result<Vec<f32>, String>>> {
        ensure!(self.most.is_none_or(|most| self.seen.len() < most), "killed");
        let feature = |file: &PathBuf| {
            let bytes = fs::read(file).unwrap();
            match bytes[0] {
                b'!' => Err("it is no good".to_owned()),
                first => Ok(vec![bytes.len() as f32, f32::from(first)]),
            }
        };
        self.seen.extend(files.iter().map(|f| f.file_name().unwrap().to_string_lossy().into()));
        Ok(files.iter().map(feature).collect())
    }

    fn progress(&mut self, _: usize, _: usize) {}

    fn say(&mut self, _: &str) {}
}

fn identity() -> Identity {
    Identity {
        weights_sha256: "a".repeat(64),
        image_size: "8x4".to_owned(),
        activation: "gelu".to_owned(),
        pos_embed: None,
        compute: "f32".to_owned(),
        embed_dim: 2,
        precision: Precision::F32,
    }
}

fn gallery(folder: &Path, files: &[(&str, &str)]) -> Gallery {
    let sources = files.iter().map(|(name, text)| {
        // Writing anew only what differs leaves the times of the rest.
        if fs::read_to_string(folder.join(name)).ok().as_deref() != Some(*text) {
            fs::write(folder.join(name), text).unwrap();
        }
        let of = fs::metadata(folder.join(name)).unwrap();
        let modified = of.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let modified_ns = modified.as_nanos() as i64;
        Source { path: (*name).to_owned(), modified_ns, num_bytes: of.len() }
    });
    Gallery {
        root: folder.to_path_buf(),
        sources: sources.collect(),
        unreadable: vec![("loop".to_owned(), "a loop".to_owned())],
        pids: BTreeMap::new(),
    }
}

fn features(index: &Index) -> Vec<f32> {
    match index.rows() {
        Rows::F32(values) => values.to_vec(),
        Rows::F16(_) => panic!("f32 was asked for"),
    }
}

#[test]
fn only_what_changed_is_embedded() {
    let folder = tempfile::tempdir().unwrap();
    let (images, path) = (folder.path().join("images"), folder.path().join("a/b.index"));
    fs::create_dir(&images).unwrap();
    let update = |files: &[(&str, &str)]| {
        let mut fake = Fake::default();
        let gallery = gallery(&images, files);
        let made = open_or_update(&path, &gallery, &identity(), false, &mut fake).unwrap();
        (made, fake.seen)
    };
    let (made, seen) = update(&[("a", "xy"), ("b", "!"), ("c", "z")]);
    assert_eq!(seen, ["a", "b", "c"]);
    assert_eq!(features(&made.index), [2.0, 120.0, 1.0, 122.0]);
    assert_eq!(made.index.source(1).unwrap().path, "c");
    let reasons: Vec<(String, String)> =
        made.unreadable.into_iter().map(|u| (u.source.path, u.reason)).collect();
    let [b, looped] = [("b", "it is no good"), ("loop", "a loop")]
        .map(|(path, reason)| (path.to_owned(), reason.to_owned()));
    assert_eq!(reasons, [b, looped]);
    drop(made.index);

    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let (made, seen) = update(&[("a", "xy"), ("b", "!"), ("c", "z")]);
    assert_eq!((seen.len(), made.kept, made.embedded, made.unreadable.len()), (0, 2, 0, 2));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "nothing was written");

    let (made, seen) = update(&[("aa", "new"), ("b", "good"), ("c", "z")]);
    assert_eq!(seen, ["aa", "b"]);
    assert_eq!(features(&made.index), [3.0, 110.0, 4.0, 103.0, 1.0, 122.0]);
    assert_eq!((made.kept, made.embedded), (1, 2));
    made.index.verify().unwrap();
    assert_eq!(made.index.row(2), Some(vec![1.0, 122.0]));
    assert_eq!(made.index.row(3), None);
}

#[test]
fn a_build_that_was_cut_short_goes_on_and_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [images, cut, fresh] = ["images", "cut", "fresh"].map(|name| folder.path().join(name));
    fs::create_dir(&images).unwrap();
    let files: Vec<(String, String)> =
        (0..100).map(|n| (format!("{n:03}"), "x".repeat(n + 1))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let gallery = gallery(&images, &files);
    let build =
        |path: &Path, fake: &mut Fake| open_or_update(path, &gallery, &identity(), false, fake);
    build(&fresh, &mut Fake::default()).unwrap();
    let mut killed = Fake { most: Some(2 * BATCH), ..Fake::default() };
    assert_eq!(build(&cut, &mut killed).err().unwrap().to_string(), "killed");
    assert!(!cut.exists(), "nothing half-written");
    // The last record was torn by the kill.
    let journal = cut.with_added_extension("journal");
    let len = fs::metadata(&journal).unwrap().len();
    fs::OpenOptions::new().write(true).open(&journal).unwrap().set_len(len - 3).unwrap();
    let mut rest = Fake::default();
    let made = build(&cut, &mut rest).unwrap();
    assert_eq!((made.resumed, made.embedded), (2 * BATCH - 1, 100 - 2 * BATCH + 1));
    assert_eq!(rest.seen.len(), made.embedded);
    assert_eq!(fs::read(&cut).unwrap(), fs::read(&fresh).unwrap());
    assert!(!journal.exists());
}

#[test]
fn a_journal_of_another_model_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (images, path) = (folder.path().join("images"), folder.path().join("index"));
    fs::create_dir(&images).unwrap();
    let gallery = gallery(&images, &[("a", "xy")]);
    let other = Header::new(identity(), "elsewhere".to_owned());
    let mut journal = journal::Journal::open(&path, &other).unwrap();
    let wrong = Outcome::Feature(encode(&[9.0, 9.0], Precision::F32));
    journal.append(vec![(gallery.sources[0].clone(), wrong)]).unwrap();
    let mut fake = Fake::default();
    let made = open_or_update(&path, &gallery, &identity(), false, &mut fake).unwrap();
    assert_eq!((made.resumed, features(&made.index)), (0, vec![2.0, 120.0]));
}

#[test]
fn other_weights_and_galleries_are_refused_until_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (images, path) = (folder.path().join("images"), folder.path().join("index"));
    fs::create_dir(&images).unwrap();
    let gallery = gallery(&images, &[("a", "xy")]);
    let build = |gallery: &Gallery, identity: &Identity, anew| {
        open_or_update(&path, gallery, identity, anew, &mut Fake::default())
    };
    build(&gallery, &identity(), false).unwrap();
    let refused = |gallery: &Gallery, identity: &Identity, told: &str| {
        let error = build(gallery, identity, false).err().unwrap();
        assert_eq!(Failure::exit_status(&error), 2, "{error}");
        assert!(error.to_string().contains(told), "{error}");
    };
    let other = Identity { weights_sha256: "b".repeat(64), ..identity() };
    refused(&gallery, &other, "weights aaaaaaaaaaaa, not bbbbbbbbbbbb");
    let half = Identity { precision: Precision::F16, ..identity() };
    refused(&gallery, &half, "precision f32, not f16");
    let elsewhere = Gallery { root: folder.path().to_path_buf(), ..gallery };
    refused(&elsewhere, &identity(), "is of the gallery");
    let gallery = Gallery { root: images.clone(), ..elsewhere };
    assert_eq!(build(&gallery, &other, true).unwrap().embedded, 1);
    refused(&gallery, &identity(), "weights bbbbbbbbbbbb, not aaaaaaaaaaaa");

    fs::write(&path, "somebody's file").unwrap();
    for anew in [false, true] {
        let error = build(&gallery, &identity(), anew).err().unwrap();
        assert!(error.to_string().contains("is no index of images"), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's file");
}

#[test]
fn damage_is_told_and_never_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (images, path) = (folder.path().join("images"), folder.path().join("index"));
    fs::create_dir(&images).unwrap();
    let build = |files: &[(&str, &str)]| {
        let gallery = gallery(&images, files);
        open_or_update(&path, &gallery, &identity(), false, &mut Fake::default())
    };
    build(&[("a", "xy"), ("b", "z")]).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[super::super::layout::HEADER_BYTES] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = build(&[("a", "xy"), ("b", "changed")]).err().unwrap().to_string();
    assert!(error.contains("damaged") && error.contains("--reindex"), "{error}");
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = format!("{:#}", build(&[("a", "xy"), ("b", "z")]).err().unwrap());
    assert!(error.contains("damaged") && error.contains("bytes, not"), "{error}");
}

#[test]
fn a_gallery_without_a_readable_image_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (images, path) = (folder.path().join("images"), folder.path().join("index"));
    fs::create_dir(&images).unwrap();
    let gallery = gallery(&images, &[("a", "!")]);
    let error = open_or_update(&path, &gallery, &identity(), false, &mut Fake::default());
    assert!(error.err().unwrap().to_string().contains("none of the 2 images"));
    assert!(!path.exists());
}
