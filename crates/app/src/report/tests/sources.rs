//! Every number of report.html is found in report.json, and every number of report.json is found
//! again from its source: this reads the runs' files by itself and computes the formulas anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use tbps_metrics::bootstrap::paired_difference;

use super::fixture::Fixture;
use crate::report::Lang;

/// What the paper's page says, by figure.
const PAPER: [(&str, f64); 11] = [
    ("paper:fp32:val_r1", 70.01),
    ("paper:fp32:peak_vram_gib", 14.15),
    ("paper:fp32:train_h_to_best", 8.54),
    ("paper:fp32-ema-gc:val_r1", 71.31),
    ("paper:fp32-ema-gc:best_epoch", 15.0),
    ("paper:amp-ema:peak_vram_gib", 9.51),
    ("paper:amp-ema:train_h_to_best", 0.63),
    ("paper:amp-ema-gc:val_r1", 71.06),
    ("paper:amp-ema-gc:peak_vram_gib", 4.23),
    ("paper:amp-ema-gc:train_h_to_best", 0.85),
    ("paper:amp-ema-gc:peak_vram_gib_less", 70.1),
];
/// Figures and records are f64 sums in one order or another.
const TOLERANCE: f64 = 1e-9;

/// The figures of a report.json by their ids.
fn figures(json: &Value) -> BTreeMap<String, Value> {
    fn collect(json: &Value, found: &mut BTreeMap<String, Value>) {
        match json {
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(fields) => {
                if fields.contains_key("shown") {
                    let id = fields["id"].as_str().unwrap().to_owned();
                    let before = found.insert(id.clone(), json.clone());
                    assert!(before.is_none_or(|before| before == *json), "{id} is two figures");
                } else {
                    fields.values().for_each(|value| collect(value, found));
                }
            }
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    collect(json, &mut found);
    found
}

/// The files of a matrix, and the figures that were made of them.
struct Sources<'a> {
    dir: &'a Path,
    figures: &'a BTreeMap<String, Value>,
}

impl Sources<'_> {
    /// What a record `run/file:key` holds.
    fn record(&self, reference: &str) -> Value {
        let (run, rest) = reference.split_once('/').unwrap();
        let (file, key) = rest.split_once(':').unwrap();
        let bytes = fs::read(self.dir.join(run).join(file)).unwrap();
        let text = || String::from_utf8(bytes.clone()).unwrap();
        let json: Value = match file.rsplit_once('.').unwrap().1 {
            "json" => serde_json::from_str(&text()).unwrap(),
            "gz" => serde_json::from_reader(GzDecoder::new(&bytes[..])).unwrap(),
            "toml" => toml::from_str(&text()).unwrap(),
            "jsonl" => {
                let lines = text();
                let lines = lines.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
                let steps: Vec<Value> = lines.filter(|line| line["kind"] == "step").collect();
                let (name, last) =
                    key.split_once('[').map_or((key, false), |(name, _)| (name, true));
                let values: Vec<Value> = steps.iter().map(|step| step[name].clone()).collect();
                return if last { values.last().unwrap().clone() } else { Value::Array(values) };
            }
            other => panic!("{other}"),
        };
        path(json, key)
    }

    /// A figure's value or a record's number; null is infinitely far.
    fn number(&self, reference: &str) -> f64 {
        let value = match self.figures.get(reference) {
            Some(figure) => figure["value"].clone(),
            None => self.record(reference),
        };
        value.as_f64().unwrap_or(f64::INFINITY)
    }

    fn by_seed(&self, figure: &str) -> BTreeMap<String, f64> {
        let seeds = self.figures[figure]["by_seed"].as_object().into_iter().flatten();
        seeds.map(|(seed, value)| (seed.clone(), value.as_f64().unwrap())).collect()
    }

    /// Value and range of a figure, from its source.
    fn recompute(&self, figure: &Value) -> (f64, Option<[f64; 2]>) {
        let id = figure["id"].as_str().unwrap();
        let source = &figure["source"];
        if source == "paper" {
            let published = PAPER.iter().chain(&[("paper:amp-ema-gc:train_h_to_best_less", 90.0)]);
            return (published.clone().find(|(name, _)| *name == id).unwrap().1, None);
        }
        if let Some(run) = source["run"].as_str() {
            let [file, key] = ["file", "key"].map(|part| source[part].as_str().unwrap());
            return (self.number(&format!("{run}/{file}:{key}")), None);
        }
        let of: Vec<&str> =
            source["of"].as_array().unwrap().iter().map(|of| of.as_str().unwrap()).collect();
        let numbers = || of.iter().map(|reference| self.number(reference)).collect::<Vec<f64>>();
        let length = |reference: &str| self.record(reference).as_array().unwrap().len() as f64;
        match source["formula"].as_str().unwrap() {
            "median_of_seeds" => over_seeds(numbers()),
            "percent_less" => self.relative(&of, |value, base| 100.0 * (1.0 - value / base)),
            "percent_more" => self.relative(&of, |value, base| 100.0 * (value / base - 1.0)),
            "difference_by_seed" => {
                let [ours, theirs] = [of[0], of[1]].map(|figure| self.by_seed(figure));
                over_seeds(ours.iter().map(|(seed, value)| value - theirs[seed]).collect())
            }
            "paired_bootstrap" => self.bootstrap(&of),
            "mean_ms" => {
                let values = self.record(of[0]);
                let values = values.as_array().unwrap();
                let sum: f64 = values.iter().map(|value| value.as_f64().unwrap()).sum();
                (1000.0 * sum / values.len() as f64, None)
            }
            "per_step_ms" => (1000.0 * numbers()[0] / numbers()[1], None),
            "rest" => (numbers()[0] - numbers()[1..].iter().sum::<f64>(), None),
            "count" => (of.len() as f64, None),
            "length" => (length(of[0]), None),
            "one_based" => (1.0 + numbers()[0], None),
            "fixed" => {
                assert_eq!(id, "limits:bootstrap_resamples");
                (10_000.0, None)
            }
            other => panic!("formula {other}"),
        }
    }

    fn relative(&self, of: &[&str], percent: fn(f64, f64) -> f64) -> (f64, Option<[f64; 2]>) {
        let value = percent(self.number(of[0]), self.number(of[1]));
        let (ours, theirs) = (self.by_seed(of[0]), self.by_seed(of[1]));
        let shared = ours.iter().filter_map(|(seed, v)| Some(percent(*v, *theirs.get(seed)?)));
        (value, over_seeds(shared.collect()).1)
    }

    /// The references are ours and theirs, seed after seed.
    fn bootstrap(&self, of: &[&str]) -> (f64, Option<[f64; 2]>) {
        let side = |offset: usize| -> Vec<f64> {
            let runs: Vec<Value> = of[offset..].iter().step_by(2).map(|r| self.record(r)).collect();
            let num_queries = runs[0].as_array().unwrap().len();
            let hits = |query: usize| runs.iter().filter(|run| run[query] == 0).count() as f64;
            (0..num_queries).map(|query| 100.0 * hits(query) / runs.len() as f64).collect()
        };
        let found = paired_difference(&side(0), &side(1), 10_000, 0).unwrap();
        (found.mean, Some([found.low, found.high]))
    }
}

/// The value at `a.b[0].c` or `a[key=value].b`.
fn path(json: Value, key: &str) -> Value {
    let mut found = json;
    for part in key.split_inclusive([']']).flat_map(|part| match part.ends_with(']') {
        true => part.split('[').map(str::to_owned).collect::<Vec<_>>(),
        false => vec![part.to_owned()],
    }) {
        if let Some(selector) = part.strip_suffix(']') {
            let items = found.as_array().unwrap().clone();
            found = match selector.split_once('=') {
                Some((name, value)) => {
                    let value: f64 = value.parse().unwrap();
                    items.into_iter().find(|item| item[name].as_f64() == Some(value)).unwrap()
                }
                None => items[selector.parse::<usize>().unwrap()].clone(),
            };
            continue;
        }
        for name in part.split('.').filter(|name| !name.is_empty()) {
            found = found[name].clone();
        }
    }
    found
}

/// Median, and the range of two and more.
fn over_seeds(mut values: Vec<f64>) -> (f64, Option<[f64; 2]>) {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let median = match n {
        0 => f64::NAN,
        _ => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    };
    (median, (n > 1).then(|| [values[0], values[n - 1]]))
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE * (1.0 + a.abs())
}

/// Whether `shown` is `value` rounded to the digits that it has.
fn rounds_to(shown: &str, value: f64) -> bool {
    let plain = shown.trim_start_matches('+').replace('−', "-");
    let decimals = plain.split_once('.').map_or(0, |(_, digits)| digits.len());
    (plain.parse::<f64>().unwrap() - value).abs() <= 0.501 * 10_f64.powi(-(decimals as i32))
}

fn check(fixture: &Fixture, at_least: usize) {
    fixture.report(Lang::En);
    let json = fixture.json();
    let figures = figures(&json);
    let sources = Sources { dir: &fixture.dir, figures: &figures };
    let unit_s = match json["notation"]["time_unit"].as_str().unwrap() {
        "s" => 1.0,
        "min" => 60.0,
        _ => 3600.0,
    };
    for (id, figure) in &figures {
        let (value, range) = sources.recompute(figure);
        let found = figure["value"].as_f64().unwrap();
        assert!(close(found, value), "{id} is {found} and from its source {value}");
        let scale = if figure["unit"] == "s" { unit_s } else { 1.0 };
        assert!(rounds_to(figure["shown"].as_str().unwrap(), found / scale), "{figure}");
        let of_report = figure["range"]
            .as_array()
            .map(|ends| [0, 1].map(|end| ends[end].as_f64().unwrap_or(f64::INFINITY)));
        let equal = match (of_report, range) {
            (Some(found), Some(range)) => close(found[0], range[0]) && close(found[1], range[1]),
            (found, range) => found.is_none() && range.is_none(),
        };
        assert!(equal, "{id} ranges over {of_report:?} and from its source {range:?}");
        if let Some(formula) = figure["source"]["formula"].as_str() {
            assert!(json["formulas"][formula].is_string(), "{formula} is not explained");
        }
    }
    assert!(figures.len() >= at_least, "only {} figures", figures.len());
}

#[test]
fn every_figure_is_found_again_from_its_source() {
    check(&Fixture::mixed("sources"), 140);
    let fixture = Fixture::empty("sources-seeds");
    for (seed, first) in [(0, 20), (1, 26), (2, 22)] {
        fixture.done(&format!("fp32.s{seed}"), first, 7200.0 + 360.0 * f64::from(seed), 8.0);
        fixture.done(&format!("amp.s{seed}"), 36 - first / 2, 3600.0, 6.0);
        fixture.done(&format!("amp-ema.s{seed}"), 34, 3000.0 + f64::from(seed), 7.0);
    }
    check(&fixture, 170);
}

/// The `data` elements of a page: (figure, is its range, value, source, text).
fn data_elements(html: &str) -> Vec<(String, bool, String, String, String)> {
    let elements = html.split("<data ").skip(1);
    elements
        .map(|rest| {
            let (head, rest) = rest.split_once('>').unwrap();
            let attribute = |name: &str| {
                let after = head.split_once(&format!("{name}=\""))?.1;
                Some(after.split_once('"')?.0.replace("&gt;", ">").replace("&amp;", "&"))
            };
            let text = rest.split_once("</data>").unwrap().0.to_owned();
            let part = attribute("data-part").is_some_and(|part| part == "range");
            let [id, value, title] =
                ["data-figure", " value", "title"].map(|name| attribute(name.trim()).unwrap());
            (id, part, value, title, text)
        })
        .collect()
}

/// Runs of digits, with what separates them within a number.
fn number_tokens(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    let trimmed = parts.map(|part| part.trim_matches('.').to_owned());
    trimmed.filter(|part| !part.is_empty()).collect()
}

/// All text of a page that is read: no tags, no style sheet, no `data` elements.
fn other_text(html: &str) -> String {
    let (before, rest) = html.split_once("<style>").unwrap();
    let page = format!("{before}{}", rest.split_once("</style>").unwrap().1);
    let mut text = String::new();
    for (i, piece) in page.split("<data ").enumerate() {
        let rest = if i == 0 { piece } else { piece.split_once("</data>").unwrap().1 };
        for tagged in rest.split('<') {
            text += tagged.split_once('>').map_or(tagged, |(_, text)| text);
            text.push(' ');
        }
    }
    text
}

#[test]
fn every_number_of_the_page_is_in_the_json() {
    for (lang, name) in [(Lang::En, "page-numbers"), (Lang::Ko, "page-numbers-ko")] {
        let fixture = Fixture::mixed(name);
        fixture.report(lang);
        let (json, html) = (fixture.json(), fixture.read("report.html"));
        let figures = figures(&json);
        let elements = data_elements(&html);
        for (id, is_range, value, source, text) in &elements {
            let figure = figures.get(id).unwrap_or_else(|| panic!("{id} is not in the JSON"));
            let shown = figure[if *is_range { "shown_range" } else { "shown" }].as_str().unwrap();
            // The answer says "more" instead of "less" where a saving is negative.
            assert!(text == shown || *text == shown.trim_start_matches('−'), "{id}: {text}");
            assert_eq!(value.parse::<f64>().ok(), figure["value"].as_f64(), "{id}");
            assert!(!source.is_empty(), "{id} has no source");
        }
        assert!(elements.len() > 120, "only {} numbers", elements.len());
        for field in html.split("<td class=\"number").skip(1) {
            assert!(field.split_once("</td>").unwrap().0.contains("<data "), "{field:.80}");
        }
        // What is left are names, explanations, records and the scales of the plots.
        let known = number_tokens(&format!("{json} {:?}", lang.words()));
        let strangers: Vec<String> =
            number_tokens(&other_text(&html)).difference(&known).cloned().collect();
        assert!(strangers.is_empty(), "{strangers:?} are not in report.json");
    }
}
