//! `tbps bench`: our side of `cargo xtask bench`, one case in a process of its own.
//!
//! The process prepares, warms up and says that it is ready; then it does one measured piece of work
//! for every line of its standard input and answers with the seconds; at the end of the input it says
//! what it held. So another process can be measured between two of our pieces, under the same
//! conditions. Lines of output are JSON objects, and PyTorch's side speaks the same.

use crate::cli::{BenchArgs, BenchWork};
use crate::config::Config;
use crate::failure::Failure;
use crate::learner::{Net, image_size};
use crate::memory::{MemoryRecord, Probe};
use crate::{optimizer, plan, print};
use anyhow::{Result, anyhow};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use burn::train::TrainStep;
use serde::Serialize;
use std::io::BufRead;
use std::time::Instant;
use tbps_data::Batch;
use tbps_data::rng::{Purpose, Stream};
use tbps_metrics::memory::alloc;
use tbps_model::ops;
use tbps_optim::Optimizer;

/// Persons of the classifier, where the identity loss is trained: as many as CUHK-PEDES trains on.
const NUM_IDS: usize = 11_003;

/// Any: the schedule moves the learning rate, which costs nothing.
const STEPS_PER_EPOCH: usize = 1000;

#[derive(Debug, Serialize)]
struct Ready {
    tbps_version: &'static str,
    git_commit: &'static str,
    threads: usize,
    num_parameters: usize,
    /// What entered the towers' matrix products.
    compute_dtype: Vec<&'static str>,
    /// Activation memory as the planner has it from the sizes alone; null where nothing is trained.
    planned_tape_bytes: Option<u64>,
    warm_up_s: f64,
}

#[derive(Debug, Serialize)]
struct Piece {
    seconds: f64,
    /// Allocated on the host after it.
    held_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Done {
    #[serde(flatten)]
    memory: MemoryRecord,
    /// Activation memory, to the byte; null where it cannot be counted.
    tape_bytes: Option<u64>,
    skipped_steps: u64,
    /// Of the last step; null when nothing was trained.
    loss: Option<f32>,
    /// Whether f32 products ran in TF32.
    tf32: bool,
}

/// Runs one case until the end of standard input.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let config = Config::load(&args.config, &args.overrides)?;
    let context = config.model.text.context_length;
    let length = args.caption_length.unwrap_or(context);
    if !(2..=context).contains(&length) {
        let message = format!("--caption-length {length}: expected 2 to {context}, the model's");
        return Err(Failure::usage(message));
    }
    let planned_tape_bytes = (args.work == BenchWork::Train).then(|| {
        let mut config = config.clone();
        config.model.text.context_length = length; // the planner takes captions at full length
        plan::predict(&config, args.device).tape
    });
    let device = args.device.open()?;
    let mut probe = Probe::new(&device, args.device.driver().as_ref());
    let (mut case, mut net) = Case::new(config, args.work, length, device)?;
    let num_parameters = net.num_params();

    let begin = Instant::now();
    net = case.work(net, None)?; // allocates what the kernels keep for good: no activation memory
    ops::take_matmul_dtypes();
    net = case.work(net, Some(&mut probe))?;
    probe.forget_warm_up();
    line(&Ready {
        tbps_version: env!("CARGO_PKG_VERSION"),
        git_commit: env!("TBPS_GIT_COMMIT"),
        threads: std::thread::available_parallelism().map_or(0, usize::from),
        num_parameters,
        compute_dtype: ops::take_matmul_dtypes().names(),
        planned_tape_bytes,
        warm_up_s: begin.elapsed().as_secs_f64(),
    })?;

    probe.begin();
    for request in std::io::stdin().lock().lines() {
        request?;
        let begin = Instant::now();
        net = case.work(net, None)?;
        let seconds = begin.elapsed().as_secs_f64();
        line(&Piece { seconds, held_bytes: alloc::current_bytes() })?;
        probe.end_training();
    }
    let tape_bytes = probe.peaks.tape;
    line(&Done {
        memory: probe.peaks.into(),
        tape_bytes: (tape_bytes > 0).then_some(tape_bytes),
        skipped_steps: case.optimizer.state().skipped_steps,
        loss: case.loss,
        tf32: rounds_f32(&case.device)?,
    })
}

/// Whether an f32 matrix product of the size of an MLP's rounds what enters it, as TF32 does: it has
/// 10 bits behind the point, and 1 + 2^-12 needs 12.
fn rounds_f32(device: &Device) -> Result<bool> {
    let [rows, inner, columns] = [1544, 768, 3072]; // eight images of 193 tokens
    let fine = 1.0 + 2f32.powi(-12);
    // Every element of the product is the one product of two numbers that are not 0.
    let mut left = vec![0.0; rows * inner];
    left.chunks_mut(inner).for_each(|row| row[0] = fine);
    let mut right = vec![0.0; inner * columns];
    right[..columns].fill(1.0);
    let left = Tensor::<2>::from_data(TensorData::new(left, [rows, inner]), device);
    let right = Tensor::<2>::from_data(TensorData::new(right, [inner, columns]), device);
    let product = left.matmul(right).into_data(); // [rows, columns]
    let product = product.as_slice::<f32>().map_err(|e| anyhow!("the product is no f32: {e}"))?;
    Ok(product.iter().any(|&element| element != fine))
}

/// What is timed, beside the model.
struct Case {
    work: BenchWork,
    config: Config,
    device: Device,
    batch: Batch,
    optimizer: Optimizer,
    loss: Option<f32>,
}

impl Case {
    fn new(
        config: Config,
        work: BenchWork,
        caption_length: usize,
        device: Device,
    ) -> Result<(Self, Net)> {
        let len = match work {
            BenchWork::Train => config.train.batch_size,
            BenchWork::Encode => config.eval.batch_size,
        };
        let batch = drawn_batch(&config, len, caption_length);
        let clip = config.model.init(config.seed, &device.clone().autodiff())?;
        let net = Net::new(clip, &config, NUM_IDS);
        let optimizer = optimizer::new(&net, &config, STEPS_PER_EPOCH)?;
        Ok((Self { work, config, device, batch, optimizer, loss: None }, net))
    }

    /// A training step, from a batch in host memory to updated weights, whose activation memory
    /// `tape` measures; or a batch of images to features in host memory.
    fn work(&mut self, net: Net, tape: Option<&mut Probe>) -> Result<Net> {
        match self.work {
            BenchWork::Train => self.train(net, tape),
            BenchWork::Encode => self.encode(net),
        }
    }

    fn train(&mut self, mut net: Net, tape: Option<&mut Probe>) -> Result<Net> {
        net.policy.loss_scale = self.optimizer.loss_scale();
        let batch = self.batch.clone();
        let output = match tape {
            Some(probe) => probe.tape(|meter| {
                net.policy.meter = Some(meter);
                TrainStep::step(&net, batch)
            }),
            None => TrainStep::step(&net, batch),
        };
        net.policy.meter = None;
        let (net, _) = self.optimizer.step(net, output.grads)?;
        self.loss = Some(output.item.loss.into_scalar());
        self.device.sync().map_err(|e| anyhow!("the device failed: {e}"))?;
        Ok(net)
    }

    fn encode(&self, net: Net) -> Result<Net> {
        let size = image_size(&self.config);
        let shape = [self.batch.len, 3, size.height, size.width];
        let pixels = TensorData::new(self.batch.pixels.clone(), shape);
        let pixels = Tensor::from_data(pixels, &self.device);
        net.valid().clip.encode_image(pixels, net.policy.compute).into_data();
        Ok(net)
    }
}

/// Noise for images, and captions of random tokens that are `caption_length` long.
fn drawn_batch(config: &Config, len: usize, caption_length: usize) -> Batch {
    let mut stream = Stream::new(config.seed, Purpose::Augment, &[]);
    let (context, vocab) = (config.model.text.context_length, config.model.text.vocab_size);
    let num_pixels = len * image_size(config).num_elements();
    let pixels = (0..num_pixels).map(|_| stream.uniform(-2.0, 2.0) as f32).collect();
    let mut token_ids = vec![0; len * context];
    for row in token_ids.chunks_mut(context) {
        row[..caption_length].fill_with(|| 1 + stream.below(vocab as u64 - 2) as i32);
        row[caption_length - 1] = vocab as i32 - 1;
    }
    let (pids, index) = ((0..len as i64).collect(), (0..len as u32).collect());
    Batch { len, pixels, token_ids, pids, index, digest: [0; 32] }
}

fn line(answer: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string(answer)?))
}
