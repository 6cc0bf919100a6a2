//! No source file is so long that nobody reads it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Lines at which a file is to be split (house style).
const MAX_LINES: usize = 600;
/// Folders that hold our source.
const ROOTS: [&str; 2] = ["crates", "xtask"];
/// What counts as source; fixtures and generated reports don't.
const EXTENSIONS: [&str; 5] = ["rs", "py", "sh", "js", "css"];

/// Checks the length of every source file of the workspace in `root`.
///
/// # Errors
/// When some are too long, with each name and length.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut long = Vec::new();
    for folder in ROOTS {
        for path in source_files(&root.join(folder))? {
            let text =
                fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let lines = text.iter().filter(|&&byte| byte == b'\n').count();
            if lines > MAX_LINES {
                let name = path.strip_prefix(root).unwrap_or(&path);
                long.push(format!("{} has {lines} lines", name.display()));
            }
        }
    }
    if long.is_empty() {
        return Ok(());
    }
    bail!("{}; split files of more than {MAX_LINES}", long.join(", "))
}

/// Source files below a folder in the order of their names; hidden folders and build outputs are
/// left out.
fn source_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("{} cannot be listed", dir.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_ours = !name.to_string_lossy().starts_with('.') && name != "target";
        if entry.file_type().with_context(unreadable)?.is_dir() {
            if is_ours {
                files.extend(source_files(&path)?);
            }
        } else if path.extension().is_some_and(|ext| EXTENSIONS.iter().any(|ours| ext == *ours)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_source_beyond_the_limit_is_reported() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["crates/a/src", "crates/a/target", "xtask"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let write = |name: &str, lines: usize| {
            fs::write(root.path().join(name), "x\n".repeat(lines)).unwrap()
        };
        write("crates/a/src/fits.rs", MAX_LINES);
        write("crates/a/src/fixture.json", 5000);
        write("crates/a/target/built.rs", 5000);
        check(root.path()).unwrap();

        write("xtask/long.rs", MAX_LINES + 1);
        let error = check(root.path()).unwrap_err().to_string();
        assert_eq!(error, "xtask/long.rs has 601 lines; split files of more than 600");
    }
}
