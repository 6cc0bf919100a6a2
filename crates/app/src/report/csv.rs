//! report.csv: one row a cell, one column a figure, in the figures' own units (times in seconds).
//! An empty field is a number that does not exist; `status` says why.

use super::compare::Difference;
use super::figure::Figure;
use super::load::Status;
use super::model::{Cell, Report};
use super::quantity::QUANTITIES;
use super::run_figures::OF_CELLS;

/// Figures computed from those of `QUANTITIES`.
const DERIVED: [&str; 4] =
    ["peak_memory", "train_s_to_best_less", "e2e_s_to_best_less", "peak_memory_less"];

/// The report as comma-separated values.
pub(crate) fn render(report: &Report) -> String {
    let quantities = QUANTITIES.iter().map(|quantity| quantity.key);
    let keys: Vec<&str> = quantities.chain(DERIVED).chain(OF_CELLS).collect();
    let mut header =
        vec!["cell".to_owned(), "status".to_owned(), "num_done".to_owned(), "tf32".to_owned()];
    let targets = report.target_scores.iter().flat_map(|score| {
        ["train_s", "e2e_s", "epoch"].map(|what| format!("{what}_to_r1_{}", score.r1))
    });
    let differences = ["r1_vs_fp32", "r1_vs_fp32_twin"];
    let ends = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}{end}"));
    header.extend(keys.iter().map(|key| (*key).to_owned()));
    header.extend(targets);
    header.extend(differences.into_iter().flat_map(ends));
    header.extend(keys.iter().flat_map(|key| ends(key).into_iter().skip(1)));
    let rows = report.cells.iter().map(|cell| row(cell, &keys));
    std::iter::once(header).chain(rows).map(|fields| line(&fields)).collect()
}

fn row(cell: &Cell, keys: &[&str]) -> Vec<String> {
    let num_done = cell.runs.iter().filter(|run| run.status == Status::Done).count();
    // Whether its f32 ran in TF32: what every speed-up against it has to say.
    let tf32 = if cell.has_done() { cell.tf32.to_string() } else { String::new() };
    let mut fields = vec![cell.cell.name(), statuses(cell), num_done.to_string(), tf32];
    fields.extend(keys.iter().map(|key| number(cell.figure(key).value())));
    for target in &cell.targets {
        let figures = [&target.train_s, &target.e2e_s, &target.epoch];
        fields.extend(figures.map(|figure| number(figure.value())));
    }
    for Difference { figure, .. } in [&cell.r1_vs_fp32, &cell.r1_vs_fp32_twin] {
        fields.push(number(figure.value()));
        fields.extend(range(figure));
    }
    fields.extend(keys.iter().flat_map(|key| range(cell.figure(key))));
    fields
}

/// The status of every run, in seed order, told once when they agree.
fn statuses(cell: &Cell) -> String {
    let mut names: Vec<String> =
        cell.runs.iter().map(|run| format!("{:?}", run.status).to_lowercase()).collect();
    if names.windows(2).all(|pair| pair[0] == pair[1]) {
        names.truncate(1);
    }
    names.join(" ")
}

fn range(figure: &Figure) -> [String; 2] {
    let range = figure.known().and_then(|known| known.range);
    [0, 1].map(|end| number(range.map(|range| range[end]).filter(|end| end.is_finite())))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The fields need no quotes: they are names and numbers of our own.
fn line(fields: &[String]) -> String {
    fields.join(",") + "\n"
}
