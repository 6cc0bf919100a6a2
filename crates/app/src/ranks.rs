//! The ranks behind a score, query by query, as `best` keeps them: gzipped JSON, so that intervals
//! can be computed again and the results of single queries be shown.

use crate::config::SplitName;
use crate::evaluate::Evaluation;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// The file's name within a checkpoint.
pub(crate) const FILE: &str = "ranks.json.gz";

/// Per query of a split, in the order of its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ranks {
    pub(crate) split: SplitName,
    /// `ema` or `raw`.
    pub(crate) weights: String,
    /// Captions searching images: 0-based rank of the first match, null without a positive.
    pub(crate) t2i: Vec<Option<u32>>,
    /// The same for images searching captions.
    pub(crate) i2t: Vec<Option<u32>>,
    /// Captions searching images: the images that rank highest, first to last.
    #[serde(default)]
    pub(crate) t2i_top: Vec<Vec<u32>>,
}

/// The ranks of an evaluation as a file.
pub(crate) fn pack(split: SplitName, weights: &str, of: &Evaluation) -> Result<Vec<u8>> {
    let ranks = Ranks {
        split,
        weights: weights.to_owned(),
        t2i: of.t2i.first_rank.clone(),
        i2t: of.i2t.first_rank.clone(),
        t2i_top: of.t2i.top.clone(),
    };
    let mut file = GzEncoder::new(Vec::new(), Compression::best());
    file.write_all(&serde_json::to_vec(&ranks)?)?;
    Ok(file.finish()?)
}

/// Reads such a file.
///
/// # Errors
/// When it is cut, or not ranks.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Ranks> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).context("it is no whole gzip file")?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tbps_metrics::retrieval;

    #[test]
    fn ranks_come_back_and_a_cut_file_does_not() {
        let features = [1.0, 0.0, 0.0, 1.0];
        let search = |pids: &[i64]| retrieval::evaluate(&features, pids, &features, &[1, 2], 2);
        let of = Evaluation { t2i: search(&[2, 3]).unwrap(), i2t: search(&[1, 2]).unwrap() };
        let file = pack(SplitName::Val, "ema", &of).unwrap();
        let ranks = unpack(&file).unwrap();
        assert_eq!((ranks.t2i, ranks.i2t), (vec![Some(1), None], vec![Some(0), Some(0)]));
        assert_eq!(ranks.t2i_top, [[0, 1], [1, 0]]);
        assert!(unpack(&file[..file.len() - 1]).is_err());
    }
}
