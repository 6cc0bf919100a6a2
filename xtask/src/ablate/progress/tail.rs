//! The last step in a `metrics.jsonl` that is being written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

/// The part of a metrics record that progress is read from.
#[derive(Deserialize)]
struct Record {
    step: u64,
}

/// Follows one `metrics.jsonl`, reading only what was added since the last look.
pub(crate) struct Tail {
    path: PathBuf,
    /// Bytes of whole lines read so far.
    offset: u64,
    step: Option<u64>,
}

impl Tail {
    /// Follows a file that need not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, offset: 0, step: None }
    }

    /// The step of the last whole line. A torn last line is left for the next look; a file that
    /// cannot be read leaves the step as it was, since progress is not worth stopping a training
    /// for.
    pub(crate) fn step(&mut self) -> Option<u64> {
        if let Ok(added) = self.read_added()
            && let Some(end) = added.iter().rposition(|&byte| byte == b'\n')
        {
            self.offset += end as u64 + 1;
            let lines = added[..end].split(|&byte| byte == b'\n');
            let last = lines.rev().find_map(|line| serde_json::from_slice::<Record>(line).ok());
            self.step = last.map(|record| record.step).or(self.step);
        }
        self.step
    }

    fn read_added(&mut self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        if file.metadata()?.len() < self.offset {
            // A resumed training cuts off what came after its checkpoint.
            self.offset = 0;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut added = Vec::new();
        file.read_to_end(&mut added)?;
        Ok(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn append(path: &std::path::Path, text: &str) {
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn torn_lines_wait_for_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.step(), None, "no file yet");

        append(&path, "{\"kind\":\"step\",\"step\":1}\n{\"kind\":\"step\",\"st");
        assert_eq!(tail.step(), Some(1));
        append(&path, "ep\":2,\"loss\":0.5}");
        assert_eq!(tail.step(), Some(1), "the line has no end yet");
        append(&path, "\n");
        assert_eq!(tail.step(), Some(2));
        assert_eq!(tail.step(), Some(2), "nothing was added");
    }

    #[test]
    fn lines_without_a_step_and_garbage_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        append(&path, "{\"step\":7}\n{\"kind\":\"note\"}\nnot json\n\n");
        assert_eq!(Tail::new(path).step(), Some(7));
    }

    #[test]
    fn a_file_cut_by_a_resume_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        append(&path, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.step(), Some(3));
        fs::write(&path, "{\"step\":1}\n").unwrap();
        assert_eq!(tail.step(), Some(1));
    }
}
