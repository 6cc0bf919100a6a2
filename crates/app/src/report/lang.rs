//! The report's languages: every heading, label and sentence, in one table a language.

use clap::ValueEnum;
use serde::Serialize;

use super::compare::Verdict;
use super::load::Status;
use super::model::MemoryBasis;

mod en;
mod ko;

/// A language that reports are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Lang {
    /// English.
    En,
    /// Korean.
    Ko,
}

impl Lang {
    /// The tag for HTML's `lang` attribute.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::Ko => "ko",
        }
    }

    /// The language's table.
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Lang::En => &en::WORDS,
            Lang::Ko => &ko::WORDS,
        }
    }
}

/// All strings of one language. Text in braces is filled in by [`fill`](super::text::fill).
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) title: &'static str,
    pub(crate) matrix: &'static str,

    pub(crate) answer: &'static str,
    pub(crate) answer_none: &'static str,
    pub(crate) answer_no_baseline: &'static str,
    pub(crate) answer_only_baseline: &'static str,
    pub(crate) split_val: &'static str,
    pub(crate) split_test: &'static str,
    /// A saving, a loss.
    pub(crate) time_change: [&'static str; 2],
    pub(crate) memory_change: [&'static str; 2],
    pub(crate) not_tested: &'static str,
    pub(crate) most_accurate: &'static str,
    pub(crate) fastest: &'static str,
    pub(crate) smallest: &'static str,
    pub(crate) notice_not_done: &'static str,
    pub(crate) notice_hardware: &'static str,
    pub(crate) against_tf32: &'static str,
    pub(crate) selected_on_test: &'static str,
    pub(crate) on_hardware: &'static str,
    pub(crate) progress: &'static str,
    pub(crate) progress_open: &'static str,

    pub(crate) cells_heading: &'static str,
    pub(crate) cells_note: &'static str,
    pub(crate) paper_heading: &'static str,
    pub(crate) paper_note: &'static str,
    pub(crate) of_the_paper: &'static str,
    pub(crate) not_published: &'static str,
    pub(crate) plots_heading: &'static str,
    pub(crate) curves_title: &'static str,
    pub(crate) curves_note: &'static str,
    pub(crate) epochs_title: &'static str,
    pub(crate) epochs_note: &'static str,
    pub(crate) trade_title: &'static str,
    pub(crate) trade_note: &'static str,
    pub(crate) pareto_note: &'static str,
    pub(crate) savings_title: &'static str,
    pub(crate) savings_note: &'static str,
    pub(crate) steps_title: &'static str,
    pub(crate) steps_note: &'static str,
    pub(crate) scaler_title: &'static str,
    pub(crate) scaler_note: &'static str,
    pub(crate) not_drawn: &'static str,
    pub(crate) no_plot: &'static str,
    pub(crate) plots_elsewhere: &'static str,
    pub(crate) axis_time: &'static str,
    pub(crate) axis_time_to_best: &'static str,
    pub(crate) axis_epoch: &'static str,
    pub(crate) axis_step: &'static str,
    pub(crate) axis_scale: &'static str,
    pub(crate) axis_step_ms: &'static str,
    pub(crate) target_word: &'static str,
    pub(crate) axis_r1: &'static str,
    pub(crate) axis_savings: &'static str,
    pub(crate) time_word: &'static str,
    pub(crate) e2e_word: &'static str,
    pub(crate) memory_word: &'static str,

    pub(crate) effects_heading: &'static str,
    pub(crate) effects_note: &'static str,
    pub(crate) accuracy_heading: &'static str,
    pub(crate) accuracy_note: &'static str,
    pub(crate) time_heading: &'static str,
    pub(crate) time_note: &'static str,
    pub(crate) targets_heading: &'static str,
    pub(crate) targets_note: &'static str,
    pub(crate) memory_heading: &'static str,
    pub(crate) memory_note: &'static str,
    pub(crate) steps_heading: &'static str,
    pub(crate) stability_heading: &'static str,
    pub(crate) stability_note: &'static str,
    pub(crate) test_heading: &'static str,
    pub(crate) test_note: &'static str,
    pub(crate) examples_heading: &'static str,
    pub(crate) examples_note: &'static str,
    pub(crate) examples_licence: &'static str,
    pub(crate) examples_missing: &'static str,
    pub(crate) example_right: &'static str,
    pub(crate) example_wrong: &'static str,
    pub(crate) described_word: &'static str,
    pub(crate) found_right: &'static str,
    pub(crate) found_wrong: &'static str,
    pub(crate) columns_not_measured: &'static str,

    pub(crate) limits_heading: &'static str,
    pub(crate) limit_device: &'static str,
    pub(crate) limit_dataset: &'static str,
    pub(crate) limit_partial: &'static str,
    pub(crate) limit_one_seed: &'static str,
    pub(crate) limit_seeds: &'static str,
    pub(crate) limit_selection: &'static str,
    pub(crate) limit_test_selection: &'static str,
    pub(crate) limit_interval: &'static str,
    pub(crate) limit_memory: &'static str,
    pub(crate) limit_batches_equal: &'static str,
    pub(crate) limit_batches_unknown: &'static str,
    pub(crate) limit_hardware: &'static str,
    pub(crate) limit_dirty: &'static str,
    pub(crate) limit_tf32: &'static str,
    pub(crate) limit_not_done: &'static str,

    pub(crate) formulas_heading: &'static str,
    /// (name in report.json's sources, what it computes).
    pub(crate) formulas: &'static [(&'static str, &'static str)],
    pub(crate) provenance_heading: &'static str,
    pub(crate) provenance_note: &'static str,
    pub(crate) provenance_key: &'static str,
    pub(crate) provenance_value: &'static str,
    pub(crate) all_runs: &'static str,
    pub(crate) without_record: &'static str,

    pub(crate) configuration: &'static str,
    pub(crate) status_word: &'static str,
    pub(crate) technique: &'static str,
    pub(crate) comparison: &'static str,
    pub(crate) difference_to_fp32: &'static str,
    pub(crate) difference_to_twin: &'static str,
    pub(crate) difference: &'static str,
    pub(crate) baseline: &'static str,
    /// (figure key, column heading without its unit).
    pub(crate) columns: &'static [(&'static str, &'static str)],

    /// done, failed, oom, diverged, unfinished, unreadable, missing.
    pub(crate) statuses: [&'static str; 7],
    /// higher, lower, no difference.
    pub(crate) verdicts: [&'static str; 3],
    /// VRAM, exact host allocations, resident host memory.
    pub(crate) bases: [&'static str; 3],
    pub(crate) not_measured: &'static str,
    pub(crate) not_reached: &'static str,
    pub(crate) not_reached_by_all: &'static str,
    pub(crate) other_hardware: &'static str,
    pub(crate) seeds_word: &'static str,
    pub(crate) no_baseline: &'static str,
    pub(crate) not_comparable: &'static str,
    pub(crate) not_recorded: &'static str,
    pub(crate) samples_per_second: &'static str,
    pub(crate) points: &'static str,
}

impl Words {
    pub(crate) fn status(&self, status: Status) -> &'static str {
        self.statuses[status as usize]
    }

    pub(crate) fn verdict(&self, verdict: Verdict) -> &'static str {
        self.verdicts[verdict as usize]
    }

    pub(crate) fn basis(&self, basis: MemoryBasis) -> &'static str {
        self.bases[basis as usize]
    }

    /// The heading of a figure; a figure without one is headed by its key.
    pub(crate) fn column(&self, key: &'static str) -> &'static str {
        self.columns.iter().find(|(name, _)| *name == key).map_or(key, |(_, heading)| heading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The placeholders of `template`, sorted: both languages must fill the same.
    fn placeholders(template: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            template.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_languages_agree_on_keys_and_placeholders() {
        let (en, ko) = (Lang::En.words(), Lang::Ko.words());
        let keys = |pairs: &'static [(&str, &str)]| pairs.iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!(keys(en.columns), keys(ko.columns));
        assert_eq!(keys(en.formulas), keys(ko.formulas));
        for (a, b) in [
            (en.answer, ko.answer),
            (en.limit_device, ko.limit_device),
            (en.limit_dataset, ko.limit_dataset),
            (en.limit_partial, ko.limit_partial),
            (en.limit_one_seed, ko.limit_one_seed),
            (en.limit_seeds, ko.limit_seeds),
            (en.limit_interval, ko.limit_interval),
            (en.limit_memory, ko.limit_memory),
            (en.limit_tf32, ko.limit_tf32),
            (en.limit_not_done, ko.limit_not_done),
            (en.not_reached_by_all, ko.not_reached_by_all),
            (en.columns_not_measured, ko.columns_not_measured),
            (en.notice_not_done, ko.notice_not_done),
            (en.on_hardware, ko.on_hardware),
            (en.progress, ko.progress),
            (en.progress_open, ko.progress_open),
            (en.pareto_note, ko.pareto_note),
            (en.examples_note, ko.examples_note),
            (en.examples_missing, ko.examples_missing),
            (en.example_wrong, ko.example_wrong),
            (en.limit_hardware, ko.limit_hardware),
        ] {
            assert_eq!(placeholders(a), placeholders(b), "{a} / {b}");
        }
    }
}
