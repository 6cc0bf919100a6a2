use super::super::notation::TimeUnit;
use super::*;
use crate::config::SplitName;
use crate::ranks::Ranks;

const NOTATION: Notation = Notation { time_unit: TimeUnit::Hours, gib_decimals: 2 };
const AMP: CellId = CellId { amp: true, ..CellId::BASELINE };

#[test]
fn the_interval_and_the_seeds_decide_the_verdict() {
    let check = |low, high, seeds: &[f64], expected| {
        let interval = Interval { mean: (low + high) / 2.0, low, high };
        assert_eq!(verdict(&interval, seeds.iter().copied()), expected, "{interval:?} {seeds:?}");
    };
    check(0.1, 2.0, &[1.0], Verdict::Higher);
    check(-2.0, -0.1, &[-1.0, -0.5], Verdict::Lower);
    check(-0.1, 2.0, &[1.0], Verdict::NoDifference);
    check(0.0, 2.0, &[1.0], Verdict::NoDifference);
    check(0.1, 2.0, &[2.5, -0.3], Verdict::NoDifference);
    check(0.1, 2.0, &[2.0, 0.0], Verdict::NoDifference);
}

fn gib(id: &str, seeds: &[f64]) -> Figure {
    let source = Source::record("r", "summary.json", "k");
    let known = Known::new(NOTATION, id, seeds[0], Unit::Gib, source);
    known.over_seeds(NOTATION, (0..).zip(seeds.iter().copied())).into()
}

fn matrix(runs: Vec<Run>) -> Matrix {
    Matrix { name: String::new(), seeds: vec![0], runs }
}

#[test]
fn a_saving_is_relative_to_the_base() {
    let matrix = matrix(Vec::new());
    let comparator = Comparator::new(&matrix, NOTATION, &[]);
    let less = |a: &Figure, b: &Figure| {
        comparator.relative(Change::Less, "k", (AMP, a), (CellId::BASELINE, b))
    };
    let saved = less(&gib("amp:k", &[4.23]), &gib("fp32:k", &[14.15]));
    let known = saved.known().unwrap();
    assert_eq!((known.shown.as_str(), known.id.as_str()), ("70.1", "amp:k_less_vs_fp32"));
    assert_eq!(known.source.describe(), "percent_less(amp:k, fp32:k)");
    let wasted = less(&gib("amp:k", &[3.0]), &gib("fp32:k", &[2.0]));
    assert_eq!(wasted.known().unwrap().shown, "−50.0");
    let seeds = less(&gib("amp:k", &[3.0, 1.0]), &gib("fp32:k", &[4.0, 4.0]));
    assert_eq!(seeds.known().unwrap().shown_range.as_deref(), Some("25.0–75.0"));
    let failed = Figure::absent(Absent::NotDone(Status::Oom));
    let two = gib("amp:k", &[2.0]);
    assert_eq!(less(&failed, &two), failed);
    assert_eq!(less(&two, &failed), Figure::absent(Absent::NoBaseline));
    assert_eq!(less(&two, &gib("fp32:k", &[0.0])), Figure::absent(Absent::NotComparable));
}

fn run(cell: CellId, ranks: &[Option<u32>]) -> Run {
    let ranks = Ranks {
        split: SplitName::Val,
        weights: "raw".to_owned(),
        t2i: ranks.to_vec(),
        i2t: Vec::new(),
        t2i_top: Vec::new(),
    };
    let missing = Run::missing(format!("{}.s0", cell.name()), cell, 0);
    Run { status: Status::Done, ranks: Some(ranks), ..missing }
}

#[test]
fn savings_across_machines_are_not_computed() {
    let matrix = matrix(vec![run(CellId::BASELINE, &[]), run(AMP, &[])]);
    let kind = |letter, run: &str| Hardware {
        letter,
        description: String::new(),
        runs: vec![run.to_owned()],
    };
    let hardware = [kind('A', "fp32.s0"), kind('B', "amp.s0")];
    let comparator = Comparator::new(&matrix, NOTATION, &hardware);
    let (a, b) = (gib("amp:k", &[1.0]), gib("fp32:k", &[2.0]));
    let less = comparator.relative(Change::Less, "k", (AMP, &a), (CellId::BASELINE, &b));
    assert_eq!(less, Figure::absent(Absent::OtherHardware));
}

#[test]
fn excluded_queries_leave_both_sides() {
    let a = run(AMP, &[Some(0), Some(3), None]);
    let b = run(AMP, &[Some(0), Some(0), Some(0)]);
    let hits = paired_hits(&[&a, &b], &[&b, &b]).unwrap();
    assert_eq!(hits, (vec![100.0, 50.0], vec![100.0, 100.0]));
    let short = run(AMP, &[Some(0)]);
    assert_eq!(paired_hits(&[&a], &[&short]), Err(Absent::NotComparable));
}
