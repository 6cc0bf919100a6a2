//! The published figures that this project sets out to examine: **the paper's, not ours**. They are
//! those of its page, "Improving Time-to-Target Performance in Text-Based Person Search", for
//! CUHK-PEDES validation with ViT-B/16 at 384x128 and batch 64 on one RTX 5070 Ti.

use serde::Serialize;

use super::cell::CellId;
use super::figure::{Absent, Figure, Known, Source, Unit};
use super::notation::Notation;

/// What the page gives of one cell.
struct Published {
    cell: CellId,
    val_r1: Option<f64>,
    peak_vram_gib: Option<f64>,
    train_h_to_best: Option<f64>,
    best_epoch: Option<f64>,
    /// Percent below FP32, as the page states them.
    memory_less: Option<f64>,
    time_less: Option<f64>,
}

const NOTHING: Published = Published {
    cell: CellId::BASELINE,
    val_r1: None,
    peak_vram_gib: None,
    train_h_to_best: None,
    best_epoch: None,
    memory_less: None,
    time_less: None,
};

const PUBLISHED: [Published; 4] = [
    Published {
        val_r1: Some(70.01),
        peak_vram_gib: Some(14.15),
        train_h_to_best: Some(8.54),
        ..NOTHING
    },
    Published {
        cell: CellId { amp: false, ema: true, gc: true },
        val_r1: Some(71.31),
        best_epoch: Some(15.0),
        ..NOTHING
    },
    Published {
        cell: CellId { amp: true, ema: true, gc: false },
        peak_vram_gib: Some(9.51),
        train_h_to_best: Some(0.63),
        ..NOTHING
    },
    Published {
        cell: CellId { amp: true, ema: true, gc: true },
        val_r1: Some(71.06),
        peak_vram_gib: Some(4.23),
        train_h_to_best: Some(0.85),
        memory_less: Some(70.1),
        time_less: Some(90.0),
        ..NOTHING
    },
];

/// The paper's figures of one cell.
#[derive(Debug, Serialize)]
pub(crate) struct PaperCell {
    pub(crate) cell: CellId,
    pub(crate) val_r1: Figure,
    pub(crate) best_epoch: Figure,
    pub(crate) train_h_to_best: Figure,
    pub(crate) train_h_to_best_less: Figure,
    pub(crate) peak_vram_gib: Figure,
    pub(crate) peak_vram_gib_less: Figure,
}

/// The cells of which the paper's page gives figures.
pub(crate) fn cells(notation: Notation) -> Vec<PaperCell> {
    // Its memory has two decimals, whatever ours need.
    let notation = Notation { gib_decimals: 2, ..notation };
    PUBLISHED
        .iter()
        .map(|published| {
            let figure = |key: &str, value: Option<f64>, unit| {
                let id = format!("paper:{}:{key}", published.cell.name());
                match value {
                    Some(value) => Known::new(notation, id, value, unit, Source::PAPER).into(),
                    None if unit == Unit::PercentLess && published.cell == CellId::BASELINE => {
                        Figure::absent(Absent::NotApplicable)
                    }
                    None => Figure::absent(Absent::NotPublished),
                }
            };
            let p = published;
            PaperCell {
                cell: p.cell,
                val_r1: figure("val_r1", p.val_r1, Unit::Percent),
                best_epoch: figure("best_epoch", p.best_epoch, Unit::Count),
                train_h_to_best: figure("train_h_to_best", p.train_h_to_best, Unit::Hours),
                train_h_to_best_less: figure(
                    "train_h_to_best_less",
                    p.time_less,
                    Unit::PercentLess,
                ),
                peak_vram_gib: figure("peak_vram_gib", p.peak_vram_gib, Unit::Gib),
                peak_vram_gib_less: figure("peak_vram_gib_less", p.memory_less, Unit::PercentLess),
            }
        })
        .collect()
}
