//! English.

use super::Words;

pub(super) const WORDS: Words = Words {
    title: "Time and memory to train text-based person search",
    matrix: "Matrix",

    answer: "{cell} reaches its best {split} checkpoint in {time} {time_unit} of training and \
             {memory} GiB ({basis}), against {base_time} {time_unit} and {base_memory} GiB for \
             FP32: {time_change} and {memory_change}, at a {split} text-to-image R@1 of {r1}% \
             against {base_r1}% ({verdict}).",
    answer_none: "No configuration trains cheaper than FP32 without losing accuracy.",
    answer_no_baseline: "The FP32 baseline is not done, so no saving can be stated yet.",
    answer_only_baseline: "Only the FP32 baseline is done, so nothing can be compared yet.",
    split_val: "validation",
    split_test: "test",
    time_change: ["{percent}% less time", "{percent}% more time"],
    memory_change: ["{percent}% less memory", "{percent}% more memory"],
    not_tested: "difference not tested",
    most_accurate: "Highest R@1",
    fastest: "Shortest training to its best",
    smallest: "Least memory",
    notice_not_done: "{done} of {all} runs are done. The others are shown as what they are and \
                      left out of every comparison.",
    notice_hardware: "The runs are from different hardware: time and memory are compared only \
                      within one kind, which a letter marks.",
    against_tf32: "against f32 in TF32",
    selected_on_test: "selected on test",
    on_hardware: "hardware {letter}",
    progress: "step {step} of {total}",
    progress_open: "step {step}",

    cells_heading: "The eight configurations",
    cells_note: "Each at its checkpoint with the best R@1 on the selection split. Less: percent below FP32; \
                 a negative number is more than FP32.",
    paper_heading: "Beside the paper's table",
    paper_note: "The shaded columns are the paper's, not ours: CUHK-PEDES validation, one RTX \
                 5070 Ti, ViT-B/16 at 384x128, batch 64. Ours are of the device and data set \
                 under Limits, so that the two show the same effect or not, and nothing more.",
    of_the_paper: "the paper's",
    not_published: "not given",
    plots_heading: "Plots",
    curves_title: "R@1 over training time",
    curves_note: "Text-to-image R@1 at each evaluation; thin lines across are the targets. A dot \
                  is the selected checkpoint, a cross where a run that is not done stopped; \
                  dashed lines have recomputation (GC) on.",
    epochs_title: "R@1 over epochs",
    epochs_note: "The same evaluations by epoch: what a technique does per update, whatever an \
                  update costs.",
    trade_title: "Memory against time",
    trade_note: "Training time to the best checkpoint, and peak memory. Lower left is \
                 cheaper; a hollow point has recomputation (GC) on.",
    pareto_note: "The line joins the Pareto front, where no other configuration takes both less \
                  time and less memory: {cells}.",
    savings_title: "Savings against FP32",
    savings_note: "Percent less than FP32: peak memory, and training time to the best \
                   checkpoint. A bar to the left of 0 is more than FP32.",
    steps_title: "Where the time of a step goes",
    steps_note: "Means over the logged steps, as the host sees them: a GPU is waited for in the \
                 update, which reads the gradients' norm. Other: reading the loss, logs, and \
                 work that was done again after a crash.",
    scaler_title: "Loss scale over steps",
    scaler_note: "Dynamic loss scaling of the AMP configurations. A cross is a skipped step: its \
                  gradients overflowed, and the scale was halved.",
    not_drawn: "Not drawn: {cells}.",
    no_plot: "No finished run to draw.",
    plots_elsewhere: "The plots are in report.html.",
    axis_time: "Training time",
    axis_time_to_best: "Training time to best",
    axis_epoch: "Epoch",
    axis_step: "Step",
    axis_scale: "Loss scale",
    axis_step_ms: "Time of a step (ms)",
    target_word: "target",
    axis_r1: "R@1 (%)",
    axis_savings: "Less than FP32 (%)",
    time_word: "Training time",
    e2e_word: "End-to-end time",
    memory_word: "Peak memory",

    effects_heading: "What each technique does by itself",
    effects_note: "One technique switched on, the other two fixed. Less: percent below the \
                   configuration without it; a negative number is more.",
    accuracy_heading: "Retrieval accuracy",
    accuracy_note: "Selection split, text to image, at the selected checkpoint. Differences in \
                    percentage points with their 95% interval.",
    time_heading: "Time",
    time_note: "Training time leaves out evaluation, checkpoint writes and warm-up; end-to-end \
                has everything.",
    targets_heading: "Time to a target",
    targets_note: "When R@1 first reached the target: training time, end-to-end time, and epoch. \
                   A seed that did not reach it counts as infinitely far, also in the median.",
    memory_heading: "Memory",
    memory_note: "Peaks over training and evaluation. Tape: the activation memory held between \
                  forward and backward.",
    steps_heading: "Where the time of a step goes",
    stability_heading: "Steps and loss scale",
    stability_note: "A skipped step had a non-finite gradient: the scale halves and nothing else \
                     changes. Executed steps count over all attempts of a resumed run.",
    test_heading: "Test split",
    test_note: "Read once, for the checkpoint selected on validation.",
    examples_heading: "What is found",
    examples_note: "Captions and the images that {cell} ({run}) ranks highest, best \
                    first. They are drawn by a fixed seed, not chosen: half of them right at \
                    rank one and half wrong, where there are enough of both. The first picture \
                    is the one that the caption was written for.",
    examples_licence: "The pictures belong to the data set: its licence decides whether this \
                       page may be passed on.",
    examples_missing: "No pictures: {reason}.",
    example_right: "right",
    example_wrong: "wrong: the right person is at rank {rank}",
    described_word: "described",
    found_right: "right person",
    found_wrong: "another person",
    columns_not_measured: "Not measured in any run: {columns}.",

    limits_heading: "Limits",
    limit_device: "Device: {devices}. Other hardware may save more or less.",
    limit_dataset: "Dataset: {datasets}. Nothing is measured on any other.",
    limit_partial: "Only a part of the dataset was used: {parts}. No score is the dataset's.",
    limit_one_seed: "One seed ({seeds}): how much the numbers vary from run to run is not \
                     measured.",
    limit_seeds: "Seeds {seeds}: numbers are the median, with lowest and highest in parentheses.",
    limit_selection: "Checkpoints are selected on validation, so validation scores are somewhat \
                      optimistic.",
    limit_test_selection: "At least one run selected its checkpoint on the test split: its \
                           scores are not comparable with selection on validation.",
    limit_interval: "Intervals resample the {queries} queries {resamples} times. They \
                     cover the choice of queries, not the randomness of training, and treat the \
                     captions of one person as independent.",
    limit_memory: "Memory is compared by {basis}.",
    limit_batches_equal: "Batches: the cells of a seed consumed the same captions in the same \
                          order with the same augmentation, as the hashes of their batches say.",
    limit_batches_unknown: "Batches: no two cells recorded hashes of the same batches, so that \
                            equal order and augmentation are not verified here.",
    limit_hardware: "Different hardware: {kinds}.",
    limit_dirty: "The code had changes that are in no commit, so that the recorded commit does \
                  not say all of it.",
    limit_tf32: "f32 matrix products ran in TF32 on tensor cores: {cells}.",
    limit_not_done: "Not done, and left out of every comparison: {runs}.",

    formulas_heading: "How the numbers are computed",
    formulas: &[
        ("median_of_seeds", "median of the finished seeds; range: lowest and highest"),
        (
            "paired_bootstrap",
            "mean over queries of the difference in hits at rank 1, in percentage points; range: \
             95% percentile interval over resampled queries",
        ),
        (
            "difference_by_seed",
            "median over the seeds of the difference of the two; range: lowest and highest",
        ),
        ("mean_ms", "1000 x the mean over the step lines of metrics.jsonl"),
        ("per_step_ms", "1000 x time / steps"),
        ("rest", "the first less all others"),
        ("count", "how many there are"),
        ("length", "how many entries it has"),
        ("one_based", "1 + value"),
        ("fixed", "set by the report itself"),
        ("percent_less", "100 x (1 - value / base value)"),
        ("percent_more", "100 x (value / base value - 1)"),
    ],
    provenance_heading: "Provenance of the runs",
    provenance_note: "From each run's run.json.",
    provenance_key: "Key",
    provenance_value: "Value",
    all_runs: "all runs",
    without_record: "no run.json",

    configuration: "Configuration",
    status_word: "Status",
    technique: "Technique",
    comparison: "Without → with",
    difference_to_fp32: "R@1 against FP32",
    difference_to_twin: "R@1 against the same in FP32",
    difference: "R@1 difference",
    baseline: "baseline",
    columns: &[
        ("val_r1", "R@1"),
        ("val_r5", "R@5"),
        ("val_r10", "R@10"),
        ("val_map", "mAP"),
        ("val_minp", "mINP"),
        ("val_raw_r1", "R@1, raw weights"),
        ("test_r1", "R@1"),
        ("test_r5", "R@5"),
        ("test_r10", "R@10"),
        ("test_map", "mAP"),
        ("test_minp", "mINP"),
        ("best_epoch", "Best epoch"),
        ("epochs", "Epochs"),
        ("train_s_to_best", "Training to best"),
        ("train_s_to_best_less", "Less time"),
        ("e2e_s_to_best", "End-to-end to best"),
        ("e2e_s_to_best_less", "Less end-to-end"),
        ("train_s", "Whole training"),
        ("e2e_s", "Whole end-to-end"),
        ("warmup_s", "Warm-up"),
        ("samples_per_s", "Throughput"),
        ("samples_per_s_more", "More throughput"),
        ("peak_memory", "Peak memory"),
        ("peak_memory_less", "Less memory"),
        ("tape_less", "Less tape"),
        ("peak_vram_gib", "Peak VRAM"),
        ("peak_pool_in_use_gib", "Pool in use"),
        ("peak_pool_reserved_gib", "Pool reserved"),
        ("peak_host_gib", "Peak host (resident)"),
        ("peak_alloc_gib", "Peak host (allocated)"),
        ("resident_alloc_gib", "Between steps"),
        ("tape_gib", "Tape"),
        ("peak_eval_gib", "Peak in evaluation"),
        ("steps", "Steps"),
        ("executed_steps", "Executed steps"),
        ("skipped_steps", "Skipped steps"),
        ("rest_s", "Rest"),
        ("eval_s", "Evaluation"),
        ("checkpoint_s", "Checkpoints"),
        ("step_ms", "A step"),
        ("step_wait_ms", "Waiting for data"),
        ("step_compute_ms", "Forward, backward"),
        ("step_update_ms", "Update"),
        ("step_other_ms", "Other"),
        ("final_scale", "Final scale"),
    ],

    statuses: [
        "done",
        "failed",
        "out of memory",
        "diverged",
        "unfinished",
        "unreadable",
        "missing",
    ],
    verdicts: ["higher", "lower", "no difference"],
    bases: [
        "peak VRAM of the process",
        "exact peak of host allocations",
        "peak resident host memory",
    ],
    not_measured: "not measured",
    not_reached: "not reached",
    not_reached_by_all: "not reached by all ({reached} of {seeds} seeds)",
    other_hardware: "other hardware",
    seeds_word: "seeds",
    no_baseline: "no baseline",
    not_comparable: "not comparable",
    not_recorded: "not recorded",
    samples_per_second: "samples/s",
    points: "pp",
};
