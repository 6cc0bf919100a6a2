//! What is timed: a training step of a cell at a caption length, or the encoding of images.

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::cell::Cell;

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// A training step, from a batch in host memory to updated weights
    Train,
    /// A batch of images to features in host memory, without gradients
    Encode,
}

impl Work {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Encode => "encode",
        }
    }
}

/// One case: both sides do the same work.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) work: Work,
    /// For images the precision alone matters.
    pub(super) cell: Cell,
    /// Tokens of each caption; `None` where no caption takes part.
    pub(super) caption_length: Option<u32>,
    pub(super) batch: u32,
    /// As `tbps` takes it.
    pub(super) device: String,
}

impl Case {
    /// All cases of these selections: the cells at the first caption length, the images, then the
    /// cells at further lengths, so that a time limit leaves out the variants first.
    pub(super) fn all(
        work: &[Work],
        cells: &[Cell],
        caption_lengths: &[u32],
        batch: u32,
        device: &str,
    ) -> Vec<Self> {
        let case = |work, cell, caption_length| Self {
            work,
            cell,
            caption_length,
            batch,
            device: device.to_owned(),
        };
        let train = |length: u32| {
            cells.iter().map(move |&cell| case(Work::Train, cell, Some(length))).collect::<Vec<_>>()
        };
        let (first, further) = caption_lengths.split_at(caption_lengths.len().min(1));
        let mut cases = Vec::new();
        let trains = work.contains(&Work::Train);
        if trains {
            cases.extend(first.iter().flat_map(|&length| train(length)));
        }
        if work.contains(&Work::Encode) {
            for amp in [false, true] {
                let cell = Cell { amp, ema: false, gc: false };
                let wanted = cells.iter().any(|cell| cell.amp == amp);
                cases.extend(wanted.then(|| case(Work::Encode, cell, None)));
            }
        }
        if trains {
            cases.extend(further.iter().flat_map(|&length| train(length)));
        }
        cases
    }

    /// Such as `train/fp32-ema/77`, with the caption length, or `encode/amp`.
    pub(super) fn name(&self) -> String {
        let (work, cell) = (self.work.name(), self.cell.name());
        match self.caption_length {
            Some(length) => format!("{work}/{cell}/{length}"),
            None => format!("{work}/{cell}"),
        }
    }

    /// Whether the sides take turns, piece by piece. On a GPU they run one after the other: each
    /// process keeps what its pool has reserved.
    pub(super) fn alternates(&self) -> bool {
        self.is_on_host()
    }

    /// Whether what it computes is in host memory.
    pub(super) fn is_on_host(&self) -> bool {
        self.device == "flex"
    }

    /// Our process.
    pub(super) fn ours(&self, tbps: &Path, config: &Path) -> Command {
        let mut command = Command::new(tbps);
        command.arg("bench").arg("--config").arg(config);
        command.args(["--work", self.work.name(), "--device", &self.device]);
        if let Some(length) = self.caption_length {
            command.args(["--caption-length", &length.to_string()]);
        }
        let key = match self.work {
            Work::Train => "train.batch_size",
            Work::Encode => "eval.batch_size",
        };
        command.args(["--set", &format!("{key}={}", self.batch)]);
        for setting in self.cell.settings(0) {
            command.args(["--set", &setting]);
        }
        command
    }

    /// PyTorch's process, with as many threads as ours used.
    pub(super) fn peer(&self, peer: &Peer, threads: Option<usize>, tf32: bool) -> Command {
        let mut command = Command::new(&peer.python);
        command.arg(&peer.script).args(["--work", self.work.name(), "--device", &self.device]);
        command.args(["--precision", self.cell.precision()]);
        command.args(["--batch", &self.batch.to_string()]);
        // No text is encoded where there is no length; the script asks for one all the same.
        let length = self.caption_length.unwrap_or(77);
        command.args(["--caption-length", &length.to_string()]);
        command.args(["--threads", &threads.unwrap_or(0).to_string()]);
        let flags = [("--recompute", self.cell.gc), ("--ema", self.cell.ema), ("--tf32", tf32)];
        command.args(flags.iter().filter(|(_, is_on)| *is_on).map(|(flag, _)| flag));
        command
    }
}

/// What starts PyTorch's side.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) python: std::path::PathBuf,
    pub(super) script: std::path::PathBuf,
}

/// A cell by its name on the command line.
pub(super) fn cell(name: &str) -> Result<Cell, String> {
    Cell::all().find(|cell| cell.name() == name).ok_or_else(|| {
        let names: Vec<String> = Cell::all().map(Cell::name).collect();
        format!("`{name}` is no cell: expected some of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(work: &[Work], cells: &str, lengths: &[u32]) -> Vec<String> {
        let cells: Vec<Cell> = cells.split(',').map(|name| cell(name).unwrap()).collect();
        Case::all(work, &cells, lengths, 8, "flex").iter().map(Case::name).collect()
    }

    fn args(command: &Command) -> String {
        let words: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn further_caption_lengths_come_last_and_images_are_encoded_once_per_precision() {
        assert_eq!(
            names(&[Work::Train, Work::Encode], "fp32,fp32-ema,amp", &[77, 32]),
            [
                "train/fp32/77",
                "train/fp32-ema/77",
                "train/amp/77",
                "encode/fp32",
                "encode/amp",
                "train/fp32/32",
                "train/fp32-ema/32",
                "train/amp/32",
            ]
        );
        assert_eq!(names(&[Work::Encode], "amp-gc", &[77]), ["encode/amp"]);
        assert_eq!(names(&[Work::Train], "amp-gc", &[32]), ["train/amp-gc/32"]);
    }

    #[test]
    fn both_sides_are_asked_for_the_same_work() {
        let all = Case::all(
            &[Work::Train, Work::Encode],
            &[cell("amp-ema-gc").unwrap()],
            &[32],
            64,
            "cuda:1",
        );
        let peer = Peer { python: "python".into(), script: "peer.py".into() };
        let ours = |case: &Case| args(&case.ours(Path::new("tbps"), Path::new("base.toml")));
        assert_eq!(
            ours(&all[0]),
            "bench --config base.toml --work train --device cuda:1 --caption-length 32 --set \
             train.batch_size=64 --set precision=\"amp-fp16\" --set ema.enabled=true --set \
             recompute=\"block\" --set seed=0"
        );
        assert_eq!(
            args(&all[0].peer(&peer, Some(2), true)),
            "peer.py --work train --device cuda:1 --precision amp-fp16 --batch 64 \
             --caption-length 32 --threads 2 --recompute --ema --tf32"
        );
        assert!(
            ours(&all[1]).contains("--work encode --device cuda:1 --set eval.batch_size=64 --set")
        );
        assert_eq!(
            args(&all[1].peer(&peer, None, false)),
            "peer.py --work encode --device cuda:1 --precision amp-fp16 --batch 64 \
             --caption-length 77 --threads 0"
        );
    }

    #[test]
    fn an_unknown_cell_is_refused_with_the_names() {
        let error = cell("fp16").unwrap_err();
        assert!(error.starts_with("`fp16` is no cell: expected some of fp32, fp32-ema"), "{error}");
    }
}
