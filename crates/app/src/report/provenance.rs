//! Where the runs come from: their run.json files side by side, what all share told once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::load::{Run, Status};

/// The runs' records, flattened to dotted keys.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Provenance {
    /// Key -> the value that every run recorded.
    pub(crate) shared: BTreeMap<String, Value>,
    /// Key -> run -> its value, where the runs differ or some lack the key.
    pub(crate) differing: BTreeMap<String, BTreeMap<String, Value>>,
    /// Runs without a run.json.
    pub(crate) without_record: Vec<String>,
}

impl Provenance {
    pub(crate) fn of(runs: &[Run]) -> Provenance {
        let present = runs.iter().filter(|run| run.status != Status::Missing);
        let (with, without): (Vec<&Run>, Vec<&Run>) =
            present.partition(|run| run.provenance.is_object());
        let mut by_key: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for run in &with {
            flatten(&run.provenance, "", &mut |key, value| {
                by_key.entry(key).or_default().insert(run.id.clone(), value.clone());
            });
        }
        let mut provenance = Provenance {
            without_record: without.into_iter().map(|run| run.id.clone()).collect(),
            ..Provenance::default()
        };
        for (key, values) in by_key {
            match same_everywhere(&values, with.len()) {
                Some(value) => provenance.shared.insert(key, value).map_or((), drop),
                None => provenance.differing.insert(key, values).map_or((), drop),
            }
        }
        provenance
    }
}

fn same_everywhere(values: &BTreeMap<String, Value>, num_runs: usize) -> Option<Value> {
    let first = values.values().next()?;
    let same = values.len() == num_runs && values.values().all(|value| value == first);
    same.then(|| first.clone())
}

/// Calls `visit` with the dotted key of every leaf; an array is a leaf.
pub(crate) fn flatten(value: &Value, key: &str, visit: &mut dyn FnMut(String, &Value)) {
    match value.as_object() {
        Some(table) => {
            for (name, value) in table {
                let dot = if key.is_empty() { "" } else { "." };
                flatten(value, &format!("{key}{dot}{name}"), visit);
            }
        }
        None => visit(key.to_owned(), value),
    }
}

/// The distinct descriptions of what the runs recorded under `keys`, those that they have.
pub(crate) fn facts(runs: &[Run], keys: &[&str]) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    for run in runs {
        let parts: Vec<String> =
            keys.iter().filter_map(|key| describe(run.provenance.get(key)?)).collect();
        let fact = parts.join(", ");
        if !fact.is_empty() && !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

/// A leaf as it is; a table as "key value" pairs of its leaves. Hashes are cut to what tells two
/// apart: the whole ones stand in the provenance.
fn describe(value: &Value) -> Option<String> {
    let mut parts = Vec::new();
    flatten(value, "", &mut |key, value| {
        if !value.is_null() {
            parts.push(format!("{key} {}", shortened(leaf(value))).trim().to_owned());
        }
    });
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn shortened(text: String) -> String {
    let is_hash = text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash { format!("{}…", &text[..12]) } else { text }
}

/// A leaf value as people read it: strings without quotes.
pub(crate) fn leaf(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_is_described_by_its_leaves() {
        let device = json!({"name": "cpu", "cores": 2, "driver": null});
        assert_eq!(describe(&device).as_deref(), Some("cores 2, name cpu"));
        assert_eq!(describe(&json!("cpu")).as_deref(), Some("cpu"));
        assert_eq!(describe(&json!(null)), None);
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(describe(&json!({"sha256": hash})).as_deref(), Some("sha256 0123456789ab…"));
    }
}
