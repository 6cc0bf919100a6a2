//! The matrix directory: one matrix, enough room.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::cell::Cell;
use crate::halt::Halt;

const MIB: u64 = 1 << 20;

/// `matrix.json`: what the directory holds, for `tbps report` and for the next call.
#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
struct Matrix {
    preset: String,
    seeds: Vec<u64>,
    cells: Vec<String>,
    device: String,
    data: String,
    weights: Option<String>,
    settings: Vec<String>,
}

impl Matrix {
    fn of(plan: &Plan) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Self {
            preset: plan.preset.to_string(),
            seeds: (0..plan.seeds).collect(),
            cells: Cell::all().map(Cell::name).collect(),
            device: plan.device.clone(),
            data: text(&plan.data),
            weights: plan.weights.as_deref().map(text),
            settings: plan.settings.clone(),
        }
    }

    /// What differs from another matrix so that their cells cannot be compared; seeds may be added.
    fn conflict(&self, other: &Self) -> Option<String> {
        let shown = |matrix: &Self| {
            [
                ("--preset", matrix.preset.clone()),
                ("--device", matrix.device.clone()),
                ("--data", matrix.data.clone()),
                ("--weights", matrix.weights.clone().unwrap_or_else(|| "none".into())),
                ("--set", format!("{:?}", matrix.settings)),
            ]
        };
        let mut pairs = shown(self).into_iter().zip(shown(other));
        let ((option, ours), (_, theirs)) = pairs.find(|(ours, theirs)| ours != theirs)?;
        Some(format!("{option} {theirs}, not {ours}"))
    }
}

/// Refuses a directory that holds a different matrix: its finished cells would stand in one table
/// with ours.
///
/// # Errors
/// [`Halt::Usage`] naming the option that differs.
pub(crate) fn refuse_other(plan: &Plan) -> Result<()> {
    match read(&plan.out).and_then(|there| Matrix::of(plan).conflict(&there)) {
        None => Ok(()),
        Some(conflict) => Err(Halt::usage(format!(
            "{} holds a matrix made with {conflict}; give another --out",
            plan.out.display()
        ))),
    }
}

/// Writes `matrix.json`. Seeds of an earlier, larger call stay in it, since their runs stay too.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn record(plan: &Plan) -> Result<()> {
    let mut matrix = Matrix::of(plan);
    if let Some(there) = read(&plan.out).filter(|there| there.seeds.len() > matrix.seeds.len()) {
        matrix.seeds = there.seeds;
    }
    let path = plan.out.join("matrix.json");
    // Whole or not at all, since other shards may read it now; under a name that none of them has.
    let owner = plan.shard.map_or_else(String::new, |shard| format!(".{}", shard.slug()));
    let temporary = plan.out.join(format!("matrix.json{owner}.tmp"));
    fs::write(&temporary, serde_json::to_string_pretty(&matrix)? + "\n")
        .and_then(|()| fs::rename(&temporary, &path))
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn read(out: &Path) -> Option<Matrix> {
    serde_json::from_str(&fs::read_to_string(out.join("matrix.json")).ok()?).ok()
}

/// Checks that the cells still to be trained fit on the disk of `out`.
///
/// # Errors
/// When they don't; the message says how much is needed, where, and how much there is.
pub(crate) fn require_disk(plan: &Plan, num_cells: usize) -> Result<()> {
    let needed = plan.preset.disk_mib(num_cells as u64);
    let available = fs4::available_space(&plan.out)
        .with_context(|| format!("the free space of {} cannot be read", plan.out.display()))?;
    match disk_shortage(needed, available / MIB) {
        None => Ok(()),
        Some(shortage) => {
            bail!("{}: {shortage}; free some or give another --out", plan.out.display())
        }
    }
}

fn disk_shortage(needed_mib: u64, available_mib: u64) -> Option<String> {
    let gib = |mib: u64| mib as f64 / 1024.0;
    (available_mib < needed_mib).then(|| {
        let (needed, available) = (gib(needed_mib), gib(available_mib));
        format!("the matrix needs {needed:.1} GiB of disk and {available:.1} GiB are free")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ablate::preset::Preset;

    fn plan(out: &Path, seeds: u64, device: &str) -> Plan {
        Plan {
            root: "/w".into(),
            preset: Preset::Smoke,
            data: "/d".into(),
            generate_data: false,
            weights: None,
            seeds,
            device: device.into(),
            out: out.into(),
            settings: vec![],
            tbps: None,
            shard: None,
        }
    }

    #[test]
    fn a_directory_has_one_matrix_that_may_gain_seeds() {
        let out = tempfile::tempdir().unwrap();
        record(&plan(out.path(), 3, "flex")).unwrap();
        refuse_other(&plan(out.path(), 5, "flex")).unwrap();
        let error = refuse_other(&plan(out.path(), 3, "cuda:0")).unwrap_err();
        assert_eq!(Halt::exit_code(&error), 2);
        assert!(error.to_string().contains("--device flex, not cuda:0"), "{error:#}");

        record(&plan(out.path(), 1, "flex")).unwrap();
        assert_eq!(read(out.path()).unwrap().seeds, [0, 1, 2]);
    }

    #[test]
    fn shortage_says_how_much_is_needed() {
        assert_eq!(disk_shortage(2048, 2048), None);
        let shortage = disk_shortage(2048, 512).unwrap();
        assert_eq!(shortage, "the matrix needs 2.0 GiB of disk and 0.5 GiB are free");
    }
}
