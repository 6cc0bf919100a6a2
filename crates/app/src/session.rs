//! `tbps train`, around the loop: everything that can be wrong is found before the first step, and
//! the summary is written after the last.

use crate::checkpoint;
use crate::config::{Config, SplitName};
use crate::data_check;
use crate::dataset;
use crate::device::DeviceName;
use crate::disk;
use crate::evaluate::EvalSet;
use crate::failure::{self, Failure, INTERRUPTED};
use crate::feed::{Feed, Shared};
use crate::learner::{Net, Policy, image_size, shorter_lengths};
use crate::learner_metrics::T2iR1;
use crate::memory::Probe;
use crate::model_file::{ModelFile, WeightsRecord};
use crate::optimizer;
use crate::pixel_cache;
use crate::progress::{Extent, Progress};
use crate::provenance::Provenance;
use crate::records::{MetricsLog, Percent, Status, Summary};
use crate::renderer::Quiet;
use crate::run_dir::{RunDir, append, write_json};
use crate::state::State;
use crate::tensorboard::EventFile;
use crate::train::{End, Measured, Run};
use anyhow::{Context, Result, anyhow};
use burn::module::Module;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::optim::{AdamWConfig, ModuleOptimizer};
use burn::train::logger::InMemoryMetricLogger;
use burn::train::metric::LossMetric;
use burn::train::{Interrupter, Learner, SupervisedTraining, TrainStep, TrainingStrategy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use tbps_data::{AugmentConfig, Batch, LoaderConfig, Tokenizer, TrainLoader};
use tbps_metrics::chrono::{Chrono, Clock, Monotonic, Phase};
use tbps_metrics::memory::nvml;
use tbps_model::{Clip, ops, weights};

/// Trains one cell; see `tbps train --help`.
pub(crate) fn run(config: Config, out: &Path, device: DeviceName, resume: bool) -> Result<()> {
    run_until(config, out, device, resume, stop_on_signal)
}

/// As [`run`], with what asks the interrupter to stop.
fn run_until(
    config: Config,
    out: &Path,
    device: DeviceName,
    resume: bool,
    watch: impl FnOnce(&Interrupter) -> Result<()>,
) -> Result<()> {
    let dir = RunDir::plan(out, &config, resume)?;
    if dir.is_done()? {
        return Ok(()); // resuming what is done does nothing
    }
    let dataset = Arc::new(dataset::open(&config.data)?);
    dataset::require_selection(&dataset, &config)?;
    let plain = device.open()?;
    let num_ids = dataset.train_pids.len();
    disk::require_room(&dir, &config, num_ids)?;
    let tokenizer = Arc::new(Tokenizer::new(config.model.text.vocab_size)?);
    let valid = EvalSet::new(&dataset, config.eval.split, &tokenizer, &config, &plain)?;
    let loader =
        TrainLoader::new(Arc::clone(&dataset), Arc::clone(&tokenizer), loader_config(&config))?;
    let batches_per_epoch = config.train.batches(loader.batches_per_epoch());
    let total_steps = (batches_per_epoch * config.train.epochs) as u64;
    // Last of the checks, because it decodes every image and keeps its result on disk.
    let fingerprint = data_check::require_clean(&dataset, dir.matrix())?;
    dir.require_same_data(&fingerprint)?;
    let cache = pixel_cache::of_run(&config, &dataset, &fingerprint)?;
    let valid = valid.with_cache(cache.clone());
    let loader = match &cache {
        Some(cache) => loader.with_cache(Arc::clone(cache)),
        None => loader,
    };
    let feed = Arc::new(Feed::new(loader, &config.train));

    // From here on a signal finishes the step and saves; before, it ends the program at once.
    let interrupter = Interrupter::new();
    watch(&interrupter)?;

    // From here on everything is on the end-to-end clock. The checks are not: the first cell of a
    // matrix makes them for all.
    let clock = Monotonic::start();
    let driver = device.driver();
    let mut probe = Probe::new(&plain, driver.as_ref()); // before anything is on the device
    let clip = config.model.init(config.seed, &plain.clone().autodiff())?;
    let (clip, weights) = match dir.has_begun() {
        true => (clip, None), // its checkpoint has the weights, its run.json where they came from
        false => initial_weights(clip, &config)?,
    };
    let _lock = dir.create(&config)?; // the weights were the last that could be wrong
    let net = Net::new(clip, &config, num_ids);
    let mut optimizer = optimizer::new(&net, &config, feed.batches_per_epoch())?;
    let (mut state, net) = restore(&dir, &config, net, &mut optimizer)?;
    dir.require_log(state.metrics_bytes)?;
    let log = MetricsLog::open(&dir, state.metrics_bytes, &mut state.elapsed)?;
    let events = || EventFile::begin(&dir.tensorboard(), state.step);
    let log = log.with_events(config.train.tensorboard.then(events).transpose()?);

    probe.peaks = state.peaks;
    state.elapsed.e2e_s += clock.now().as_secs_f64();
    let extent = Extent {
        title: format!("{}, seed {}, {device}", config.cell(), config.seed),
        total_steps,
        epochs: config.train.epochs,
        batch_size: config.train.batch_size,
    };
    let mut run = Run {
        chrono: Chrono::resume(clock, state.elapsed),
        probe,
        saved_at_s: state.elapsed.e2e_s,
        executed: append(&dir.executed())?,
        dir,
        device: plain.clone(),
        feed: Arc::clone(&feed),
        optimizer,
        progress: Progress::new(extent, state.step, state.elapsed),
        state,
        log,
        config,
    };
    let test = (run.config.eval.read_test && !dataset.test.captions.is_empty())
        .then(|| EvalSet::new(&dataset, SplitName::Test, &tokenizer, &run.config, &plain))
        .transpose()?
        .map(|test| test.with_cache(cache));
    let dir = run.dir.clone();
    let tf32 = device.may_run_in_tf32();
    let (cell, seed) = (run.config.cell(), run.config.seed);
    let driver = driver.as_ref().and_then(nvml::describe);
    let provenance = Provenance::new(&run.config, device, driver, &dataset, fingerprint, weights);
    let training = move || {
        let compute_dtype = warm_up(&mut run, &net, device)?;
        let num_parameters = net.num_params();
        let provenance = Provenance { compute_dtype, num_parameters, total_steps, ..provenance };
        provenance.record(&run.dir.run_json(), run.state.step)?;
        launch(run, net, valid, interrupter)
    };
    match catch_unwind(AssertUnwindSafe(training)) {
        Ok(Ok((run, end))) => finish(run, end, test, tf32),
        Ok(Err(error)) => Err(resumable(&error)),
        Err(panic) => died(&dir, cell, seed, tf32, &panic_message(&*panic)),
    }
}

/// The weights that training starts from, and where they come from, if that is a file.
fn initial_weights(clip: Clip, config: &Config) -> Result<(Clip, Option<WeightsRecord>)> {
    let settings = &config.weights;
    if settings.file.as_os_str().is_empty() {
        return Ok((clip, None));
    }
    let file = ModelFile::read(&settings.file)?;
    let (clip, record) = file.load_into(clip, &config.model, settings)?;
    Ok((clip, Some(record)))
}

/// Goes on from the last whole checkpoint, or from the start when there is none.
fn restore(
    dir: &RunDir,
    config: &Config,
    net: Net,
    optimizer: &mut tbps_optim::Optimizer,
) -> Result<(State, Net)> {
    match checkpoint::read(&dir.checkpoints(), "last")? {
        None => Ok((State::new(&config.eval.targets), net)),
        Some((files, warning)) => {
            if let Some(warning) = warning {
                crate::say(&format!("warning: {warning}; going on from its predecessor"));
            }
            State::from_files(files, net, optimizer).context("checkpoints/last")
        }
    }
}

fn loader_config(config: &Config) -> LoaderConfig {
    LoaderConfig {
        batch_size: config.train.batch_size,
        image_size: image_size(config),
        context_length: config.model.text.context_length,
        sampler: config.data.sampler,
        seed: config.seed,
        threads: config.data.threads,
        augment: AugmentConfig {
            flip_probability: config.augment.flip_probability,
            pad_px: config.augment.pad_px as _,
            erase_probability: config.augment.erase_probability,
            ..AugmentConfig::default()
        },
    }
}

/// Two steps and an update that changes nothing, off the train clock: kernels are compiled and tuned, the
/// activation memory is measured with nothing else running, and the dtypes of the products seen.
fn warm_up(run: &mut Run, net: &Net, device: DeviceName) -> Result<Vec<&'static str>> {
    run.chrono.enter(Phase::Warmup);
    let context_length = run.config.model.text.context_length;
    let batch = blank_batch(&run.config, context_length);
    // The first step allocates what the kernels keep for good, which is no activation memory.
    TrainStep::step(net, batch.clone());
    ops::take_matmul_dtypes();
    let output = run.probe.tape(|meter| {
        let mut net = net.clone();
        net.policy.meter = Some(meter);
        TrainStep::step(&net, batch)
    });
    let dtypes = ops::take_matmul_dtypes().names();
    run.optimizer.rehearse(net, output.grads)?;
    if device.compiles_per_shape() {
        for length in shorter_lengths(context_length) {
            TrainStep::step(net, blank_batch(&run.config, length));
        }
    }
    run.device.sync().map_err(|e| anyhow!("the device failed: {e}"))?;
    run.device.memory_cleanup();
    run.probe.forget_warm_up();
    run.chrono.leave();
    Ok(dtypes)
}

/// A batch of the run's shape whose captions have `length` tokens.
fn blank_batch(config: &Config, length: usize) -> Batch {
    let (len, text) = (config.train.batch_size, &config.model.text);
    let mut row = vec![0; text.context_length];
    row[..length - 1].fill(1);
    row[length - 1] = text.vocab_size as i32 - 1;
    Batch {
        len,
        pixels: vec![0.0; len * image_size(config).num_elements()],
        token_ids: row.repeat(len),
        pids: vec![0; len],
        index: (0..len as u32).collect(),
        digest: [0; 32],
    }
}

/// Runs the loop inside burn-train.
fn launch(run: Run, net: Net, valid: EvalSet, interrupter: Interrupter) -> Result<(Run, End)> {
    let (feed, epochs, folder) = (Arc::clone(&run.feed), run.config.train.epochs, run.dir.clone());
    let strategy = Arc::new(Measured::new(run));
    // burn-train's learner wants an optimizer and a schedule; the strategy steps the run's own.
    let unused = ModuleOptimizer::from(AdamWConfig::new().build());
    let learner = Learner::new(net, unused, ModuleLrScheduler::from(0.0));
    let result = SupervisedTraining::new(
        folder.checkpoints(),
        Arc::new(Shared(feed)),
        Arc::new(Shared(Arc::new(valid))),
    )
    .metric_train_numeric(LossMetric::new())
    .metric_valid_numeric(T2iR1::default())
    .with_metric_logger(InMemoryMetricLogger::default())
    .with_application_logger(None)
    .renderer(Box::new(Quiet))
    .with_interrupter(interrupter)
    .with_training_strategy(TrainingStrategy::Custom(strategy.clone()))
    .num_epochs(epochs)
    .launch(learner);
    if let Some(error) = result.error {
        return Err(anyhow!("{error}"));
    }
    let (run, end) = strategy.end().context("burn-train did not run the strategy")?;
    Ok((run, end?))
}

/// SIGINT and SIGTERM finish the step and save; a second one ends the program at once, which loses
/// no more than a kill does.
fn stop_on_signal(interrupter: &Interrupter) -> Result<()> {
    let interrupter = interrupter.clone();
    let stop = move || {
        if interrupter.should_stop() {
            std::process::exit(INTERRUPTED.into());
        }
        interrupter.stop(Some("interrupted"));
    };
    ctrlc::set_handler(stop).context("cannot handle signals")
}

/// An error outside of the training itself, such as a full disk: the last checkpoint stands.
fn resumable(error: &anyhow::Error) -> anyhow::Error {
    let line = failure::line(error);
    anyhow!(
        "{line}; once that is put right, the same command with --resume goes on from the last checkpoint"
    )
}

/// Concludes the run and says how it ended.
fn finish(run: Run, end: End, test: Option<EvalSet>, tf32: bool) -> Result<()> {
    let (status, message) = match end {
        End::Interrupted => {
            return Err(Failure::Interrupted(format!(
                "interrupted at step {}; the same command with --resume goes on from there",
                run.state.step
            ))
            .into());
        }
        End::Done => (Status::Done, None),
        End::Stopped(why) => (Status::Done, Some(why)),
        End::Diverged(why) => (Status::Diverged, Some(why)),
    };
    conclude(run, status, message.clone(), test, tf32).map_err(|error| resumable(&error))?;
    match (status, message) {
        (Status::Diverged, Some(why)) => Err(anyhow!("diverged: {why}")),
        (_, Some(why)) => {
            crate::say(&why);
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

/// Reads test once for the selected checkpoint, and writes the summary.
fn conclude(
    mut run: Run,
    status: Status,
    message: Option<String>,
    test: Option<EvalSet>,
    tf32: bool,
) -> Result<()> {
    let best = match checkpoint::read(&run.dir.checkpoints(), "best")? {
        // Its predecessor is another epoch's than the scores are of.
        Some((_, Some(damage))) => {
            crate::say(&format!("warning: {damage}; it has no test score"));
            None
        }
        found => found.map(|(files, _)| files),
    };
    let test = match (&best, test, status) {
        (Some(files), Some(test), Status::Done) => {
            run.chrono.enter(Phase::Eval);
            let bytes = files.get("weights.safetensors").context("best has no weights")?;
            let clip = run.config.model.init(run.config.seed, &run.device)?;
            let clip = weights::load(clip, checkpoint::from_safetensors(bytes)?)?;
            let scores = test.evaluate(&clip, Policy::new(&run.config).compute)?.t2i.scores;
            run.chrono.leave();
            Some(Percent::from(&scores))
        }
        _ => None,
    };
    run.probe.sample(); // checkpoints and the reading of test are over too
    let summary = summary(&run, status, message, best, test, tf32)?;
    write_json(&run.dir.summary(), &summary)
}

fn summary(
    run: &Run,
    status: Status,
    message: Option<String>,
    best_files: Option<checkpoint::Files>,
    test: Option<Percent>,
    tf32: bool,
) -> Result<Summary> {
    let (elapsed, state, best) = (run.chrono.elapsed(), &run.state, run.state.best);
    let optimizer = run.optimizer.state();
    let weights = best_files.as_ref().and_then(|files| files.get("weights.safetensors"));
    let samples = state.step as f64 * run.config.train.batch_size as f64;
    Ok(Summary {
        cell: run.config.cell(),
        seed: run.config.seed,
        status,
        message,
        epochs: state.epoch - 1,
        best_epoch: best.map(|b| b.epoch),
        val: best.map(|b| b.val),
        val_raw: best.map(|b| b.val_raw),
        test,
        train_s_to_best: best.map(|b| b.train_s),
        e2e_s_to_best: best.map(|b| b.e2e_s),
        train_s: Some(elapsed.train_s),
        e2e_s: Some(elapsed.e2e_s),
        eval_s: Some(elapsed.eval_s),
        checkpoint_s: Some(elapsed.checkpoint_s),
        warmup_s: Some(elapsed.warmup_s),
        time_to_target: state.targets.clone(),
        samples_per_s: (elapsed.train_s > 0.0).then(|| samples / elapsed.train_s),
        steps: Some(state.step),
        skipped_steps: Some(optimizer.skipped_steps),
        executed_steps: std::fs::metadata(run.dir.executed())?.len(),
        final_scale: optimizer.scaler.map(|scaler| scaler.scale),
        memory: run.probe.peaks.into(),
        best_weights_sha256: weights.map(|bytes| checkpoint::sha256(bytes)),
        tf32,
    })
}

/// A panic inside training: out of memory on a device, or a bug. The run is over either way, and
/// what it measured went with it.
fn died(dir: &RunDir, cell: String, seed: u64, tf32: bool, message: &str) -> Result<()> {
    let lower = message.to_lowercase();
    let oom = ["out of memory", "outofmemory", "out_of_memory"].iter().any(|s| lower.contains(s));
    let (status, advice) = match oom {
        true => (Status::Oom, OOM_ADVICE),
        false => (Status::Failed, "this is a bug in tbps: please report it with this message"),
    };
    let message = format!("{}: {advice}", message.lines().next().unwrap_or_default());
    write_end(dir, cell, seed, tf32, status, &message)?;
    Err(anyhow!("{message}"))
}

const OOM_ADVICE: &str = "try recompute = \"block\", precision = \"amp-fp16\", train.micro_batch or a \
                          smaller batch, whichever is not set yet";

/// The summary of a run whose process the system killed: it had no time to write one.
pub(crate) fn record_oom(root: &Path, device: DeviceName) -> Result<()> {
    let dir = RunDir::existing(root)?;
    let config = Config::of_run(&dir.config())?;
    let message = format!("the system ran out of memory and ended the run: {OOM_ADVICE}");
    let tf32 = device.may_run_in_tf32();
    write_end(&dir, config.cell(), config.seed, tf32, Status::Oom, &message)
}

/// The summary of a run that ended without measurements.
fn write_end(
    dir: &RunDir,
    cell: String,
    seed: u64,
    tf32: bool,
    status: Status,
    message: &str,
) -> Result<()> {
    // None were counted when it ended before the first.
    let executed_steps = std::fs::metadata(dir.executed()).map_or(0, |of| of.len());
    let message = Some(message.to_owned());
    let summary = Summary { cell, seed, executed_steps, tf32, message, ..Summary::of(status) };
    write_json(&dir.summary(), &summary)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
