//! Which crate may depend on which: the app on the four libraries, the libraries and xtask on none
//! of ours, and burn only where tensors are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use anyhow::{Context, Result, bail};
use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};

const APP: &str = "tbps";
const LIBRARIES: [&str; 4] = ["tbps-data", "tbps-model", "tbps-optim", "tbps-metrics"];
const XTASK: &str = "xtask";
/// Crates that work on plain arrays or on files: useful, and quick to build, without burn.
const WITHOUT_BURN: [&str; 3] = ["tbps-data", "tbps-metrics", XTASK];

/// Crate name to the names it depends on directly, in any way (also for its tests or its build).
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks the edges of the workspace in `root` and that `Cargo.lock` is up to date.
///
/// # Errors
/// When an edge is wrong, with one line for each.
pub(crate) fn check(root: &Path) -> Result<()> {
    let metadata = MetadataCommand::new()
        .current_dir(root)
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked".to_string()])
        .exec()
        .context("if Cargo.lock is out of date, run `cargo check` and commit it")?;
    let violations = violations(&graph(&metadata)?);
    if violations.is_empty() {
        return Ok(());
    }
    bail!("{}", violations.join("; "))
}

fn graph(metadata: &Metadata) -> Result<Graph> {
    let names: BTreeMap<_, _> =
        metadata.packages.iter().map(|package| (&package.id, package.name.to_string())).collect();
    let resolve = metadata.resolve.as_ref().context("cargo metadata resolved no dependencies")?;
    let mut graph = Graph::new();
    for node in &resolve.nodes {
        let name = names
            .get(&node.id)
            .context("cargo metadata resolves a package that it does not list")?;
        // Several versions of a crate fall together, which can only find more.
        let dependencies = graph.entry(name.clone()).or_default();
        dependencies.extend(node.dependencies.iter().filter_map(|id| names.get(id).cloned()));
    }
    Ok(graph)
}

fn violations(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for name in LIBRARIES.into_iter().chain([APP, XTASK]) {
        let Some(dependencies) = graph.get(name) else {
            found.push(format!("there is no crate {name}"));
            continue;
        };
        let allowed: &[&str] = if name == APP { &LIBRARIES } else { &[] };
        let ours =
            LIBRARIES.into_iter().chain([APP, XTASK]).filter(|ours| dependencies.contains(*ours));
        found.extend(
            ours.filter(|ours| !allowed.contains(ours)).map(|ours| format!("{name} -> {ours}")),
        );
        let missing = allowed.iter().filter(|library| !dependencies.contains(**library));
        found.extend(missing.map(|library| format!("{name} does not use {library}")));
    }
    for name in WITHOUT_BURN {
        found.extend(path_to_burn(graph, name).map(|path| path.join(" -> ")));
    }
    found
}

/// The shortest way from a crate to one of burn's, if there is any.
fn path_to_burn<'a>(graph: &'a Graph, from: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from = BTreeMap::from([(from, None)]);
    let mut queue = VecDeque::from([from]);
    while let Some(name) = queue.pop_front() {
        if name == "burn" || name.starts_with("burn-") {
            let mut path: Vec<&str> =
                std::iter::successors(Some(name), |at| came_from[at]).collect();
            path.reverse();
            return Some(path);
        }
        for next in graph.get(name).into_iter().flatten() {
            came_from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                Some(name)
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from lines of "crate: dependency dependency".
    fn parse(text: &str) -> Graph {
        let words = |text: &str| text.split_whitespace().map(String::from).collect();
        let edge =
            |line: &str| line.split_once(':').map(|(name, rest)| (name.trim().into(), words(rest)));
        text.lines().filter_map(edge).collect()
    }

    const GOOD: &str = "tbps: tbps-data tbps-model tbps-optim tbps-metrics burn
        tbps-data: image
        tbps-model: burn
        tbps-optim: burn
        tbps-metrics: rayon
        xtask: clap
        burn: burn-core
        rayon: crossbeam";

    fn check(from: &str, to: &str, expected: &[&str]) {
        assert_ne!(GOOD.replace(from, to), GOOD, "the change applies");
        assert_eq!(violations(&parse(&GOOD.replace(from, to))), expected, "{from} => {to}");
    }

    #[test]
    fn the_design_has_no_violation() {
        assert_eq!(violations(&parse(GOOD)), Vec::<String>::new());
    }

    #[test]
    fn edges_between_our_crates_are_found() {
        check("tbps-optim: burn", "tbps-optim: burn tbps-model", &["tbps-optim -> tbps-model"]);
        check("tbps-model: burn", "tbps-model: burn tbps", &["tbps-model -> tbps"]);
        check("xtask: clap", "xtask: clap tbps-metrics", &["xtask -> tbps-metrics"]);
        check("tbps-metrics burn", "burn", &["tbps does not use tbps-metrics"]);
        check("xtask: clap", "other: clap", &["there is no crate xtask"]);
    }

    #[test]
    fn burn_is_found_at_any_distance() {
        check("tbps-data: image", "tbps-data: burn", &["tbps-data -> burn"]);
        check(
            "rayon: crossbeam",
            "rayon: crossbeam\ncrossbeam: burn-core",
            &["tbps-metrics -> rayon -> crossbeam -> burn-core"],
        );
    }
}
