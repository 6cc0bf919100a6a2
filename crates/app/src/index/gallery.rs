//! The images that are to be searched: those below a folder, or those of a split.

use crate::failure::Failure;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::time::UNIX_EPOCH;
use tbps_data::{Dataset, SplitName};
use walkdir::WalkDir;

/// Names that say "image": such a file is listed as unreadable when its content says otherwise.
const EXTENSIONS: [&str; 12] =
    ["avif", "bmp", "gif", "heic", "jpeg", "jpg", "jxl", "png", "ppm", "tif", "tiff", "webp"];

/// What is to be searched, in the order of the index.
#[derive(Debug)]
pub(crate) struct Gallery {
    /// The folder that the images' paths start from.
    pub(crate) root: PathBuf,
    pub(crate) sources: Vec<Source>,
    /// What could not even be looked at, with the reason.
    pub(crate) unreadable: Vec<(String, String)>,
    /// Who is on an image, where that is known.
    pub(crate) pids: BTreeMap<String, i64>,
}

/// A file and the state that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// Below the gallery's root, with `/` between its parts.
    pub(crate) path: String,
    /// Time of the last change in nanoseconds since 1970, negative before.
    pub(crate) modified_ns: i64,
    pub(crate) num_bytes: u64,
}

impl Gallery {
    /// All images below `folder`, sorted by path. Links are followed. A file counts as an image when
    /// its content or its name says so.
    ///
    /// # Errors
    /// A usage failure when there is no such folder, or no image in it.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self> {
        let shown = folder.display();
        if !folder.is_dir() {
            return Err(Failure::usage(format!("--gallery: there is no folder {shown}")));
        }
        let root = fs::canonicalize(folder).with_context(|| format!("cannot read {shown}"))?;
        let (mut sources, mut unreadable) = (Vec::new(), Vec::new());
        for entry in WalkDir::new(&root).follow_links(true) {
            let found = match &entry {
                Ok(entry) if !entry.file_type().is_file() => continue,
                Ok(entry) => look(&root, entry.path()),
                Err(error) => {
                    let path = error.path().unwrap_or(&root);
                    Err((below(&root, path).to_string_lossy().into_owned(), error.to_string()))
                }
            };
            match found {
                Ok(source) => sources.extend(source),
                Err(fault) => unreadable.push(fault),
            }
        }
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        unreadable.sort();
        if sources.is_empty() {
            return Err(Failure::usage(format!("--gallery: {shown} holds no image")));
        }
        Ok(Self { root, sources, unreadable, pids: BTreeMap::new() })
    }

    /// The images of a split in the order of its annotation.
    ///
    /// # Errors
    /// When the split has none.
    pub(crate) fn of_split(dataset: &Dataset, split: SplitName) -> Result<Self> {
        let root = dataset.images_dir();
        let root =
            fs::canonicalize(&root).with_context(|| format!("cannot read {}", root.display()))?;
        let (mut sources, mut unreadable) = (Vec::new(), Vec::new());
        let mut pids = BTreeMap::new();
        for image in &dataset.split(split)?.images {
            let path = image.path.to_string_lossy().replace(MAIN_SEPARATOR, "/");
            pids.insert(path.clone(), image.pid);
            match fs::metadata(root.join(&image.path)) {
                Ok(of) => sources.push(Source::new(path, &of)),
                Err(error) => unreadable.push((path, error.to_string())),
            }
        }
        Ok(Self { root, sources, unreadable, pids })
    }
}

impl Source {
    fn new(path: String, of: &Metadata) -> Self {
        let modified_ns = of.modified().map_or(0, |time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i64,
            Err(before) => -(before.duration().as_nanos() as i64),
        });
        Self { path, modified_ns, num_bytes: of.len() }
    }
}

/// A file as a source, nothing if it is no image, or its path and why it cannot be told.
fn look(root: &Path, file: &Path) -> Result<Option<Source>, (String, String)> {
    let relative = below(root, file);
    let fault = |reason: String| (relative.to_string_lossy().into_owned(), reason);
    let named = relative.extension().is_some_and(|extension| {
        EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
    });
    let image = match begins_like_an_image(file) {
        Ok(like) => like || named,
        Err(error) if named => return Err(fault(error.to_string())),
        Err(_) => false,
    };
    if !image {
        return Ok(None);
    }
    let Some(path) = relative.to_str() else {
        return Err(fault("its name is not UTF-8: rename it".to_owned()));
    };
    let of = fs::metadata(file).map_err(|error| fault(error.to_string()))?;
    Ok(Some(Source::new(path.replace(MAIN_SEPARATOR, "/"), &of)))
}

fn below<'a>(root: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}

/// Whether the file begins as JPEG, PNG or BMP files do.
fn begins_like_an_image(file: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(file)?.take(16).read_to_end(&mut start)?;
    Ok(media_type(&start).is_some())
}

/// The media type of an image file that can be decoded, by its first bytes.
pub(crate) fn media_type(start: &[u8]) -> Option<&'static str> {
    // A bitmap's name is two letters; its header goes on with a size, and two zeros.
    let bitmap = start.starts_with(b"BM") && start.get(6..10) == Some(&[0; 4]);
    match start {
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        _ => bitmap.then_some("image/bmp"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_told_by_content_or_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        put("b/no extension", b"\x89PNG\r\n\x1a\n...");
        put("b/A.JPG", b"\xff\xd8\xff...");
        put("a.webp", b"RIFF");
        put("notes.txt", b"BMW is a car maker");
        put("empty", b"");
        let gallery = Gallery::of_folder(folder.path()).unwrap();
        let paths: Vec<&str> = gallery.sources.iter().map(|s| s.path.as_str()).collect();
        assert_eq!(paths, ["a.webp", "b/A.JPG", "b/no extension"]);
        assert_eq!(gallery.unreadable, []);
        assert_eq!(gallery.sources[0].num_bytes, 4);
    }

    #[test]
    #[cfg(unix)]
    fn links_are_followed_and_loops_are_listed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        symlink(folder.path().join("a.png"), folder.path().join("b.png")).unwrap();
        symlink(folder.path(), folder.path().join("loop")).unwrap();
        symlink("nowhere", folder.path().join("gone.png")).unwrap();
        let gallery = Gallery::of_folder(folder.path()).unwrap();
        let paths: Vec<&str> = gallery.sources.iter().map(|s| s.path.as_str()).collect();
        assert_eq!(paths, ["a.png", "b.png"]);
        let listed: Vec<&str> = gallery.unreadable.iter().map(|(p, _)| p.as_str()).collect();
        assert_eq!(listed, ["gone.png", "loop"]);
    }

    #[test]
    fn a_folder_without_images_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (path, told) in
            [(folder.path().to_path_buf(), "no image"), (folder.path().join("absent"), "no folder")]
        {
            let error = Gallery::of_folder(&path).unwrap_err();
            assert_eq!(Failure::exit_status(&error), 2);
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
