//! Memory that a step and a backward sweep take, counted by the allocator of this test binary.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Tensor};
use tbps_optim::recompute::{Again, Keep, Stage};
use tbps_optim::{EmaConfig, Gathered, Optimizer, OptimizerConfig, WarmupCosine, recompute, root};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[expect(unsafe_code, reason = "a global allocator cannot be written without")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are the process's, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work`; the most bytes alive meanwhile, less those alive before.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    (result, PEAK.load(Relaxed) - before)
}

/// A residual block, wide inside, without dropout.
#[derive(Module, Debug)]
struct Block {
    wide: Linear,
    narrow: Linear,
}

impl Block {
    fn new(width: usize, device: &Device) -> Self {
        Self {
            wide: LinearConfig::new(width, 4 * width).init(device),
            narrow: LinearConfig::new(4 * width, width).init(device),
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        x.clone() + self.narrow.forward(self.wide.forward(x).tanh())
    }
}

/// Every gradient of `blocks`, as numbers.
fn values(blocks: &Vec<Block>, grads: &GradientsParams) -> Vec<Vec<f32>> {
    struct Values<'a>(&'a GradientsParams, Vec<Vec<f32>>);
    impl ModuleVisitor for Values<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push(self.0.get::<D>(param.id).unwrap().try_into_vec_as().unwrap());
        }
    }
    let mut values = Values(grads, Vec::new());
    blocks.visit(&mut values);
    values.1
}

#[test]
fn recomputation_gives_the_same_gradients_in_less_memory() {
    let _alone = alone();
    let device = Device::flex();
    let blocks: Vec<Block> = (0..16).map(|_| Block::new(16, &device.clone().autodiff())).collect();
    let x = Tensor::<3>::random([8, 32, 16], Distribution::Default, &device);
    let f = |block: &Block, x| block.forward(x);
    let again: &Again<'_, Block> = &|block, x, gradient| root(block.forward(x), gradient);
    let target = Tensor::<3>::random([8, 32, 16], Distribution::Default, &device);
    let loss = |y: Tensor<3>| (y - target.clone()).square().mean();
    blocks.iter().for_each(|block| drop(f(&block.valid(), x.clone()))); // initialises them

    let plain = || {
        let leaf = Tensor::from_inner(x.clone()).require_grad();
        let y = blocks.iter().fold(leaf.clone(), |x, block| f(block, x));
        let mut tape = loss(y).backward();
        let mut grads = Gathered::new(&|_| {});
        assert_eq!(grads.collect(&blocks, &mut tape), 64);
        (grads.into_params(), leaf.grad_remove(&mut tape).unwrap())
    };
    let swept = |keep| {
        let stages = [Stage { forward: &f, keep }];
        let swept = recompute::forward(&blocks, x.clone(), &stages);
        let leaf = Tensor::from_inner(swept.output.clone()).require_grad();
        let mut tape = loss(leaf.clone()).backward();
        let upstream = leaf.grad_remove(&mut tape).unwrap();
        let mut grads = Gathered::new(&|_| {});
        let first = recompute::backward(&blocks, swept, upstream, &stages, &mut grads);
        (grads.into_params(), first)
    };
    let ((plain_grads, plain_first), plain_bytes) = peak_of(plain);
    let kept = [
        ("input", Keep::Input(again), plain_bytes / 2),
        ("tape", Keep::Tape, plain_bytes * 51 / 50),
    ];
    for (name, keep, most) in kept {
        let ((grads, first), bytes) = peak_of(|| swept(keep));
        assert_eq!(values(&blocks, &grads), values(&blocks, &plain_grads), "{name}");
        first.into_data().assert_eq(&plain_first.clone().into_data(), true);
        assert!(bytes < most, "{name}: {bytes} bytes against {plain_bytes}");
    }
}

#[test]
fn a_block_used_twice_gets_the_sum() {
    let _alone = alone();
    let device = Device::flex();
    let block = Block::new(4, &device.clone().autodiff());
    let once = Tensor::<3>::ones([1, 2, 4], &device);
    let f = |block: &Block, x| block.forward(x);
    let again: &Again<'_, Block> = &|block, x, gradient| root(block.forward(x), gradient);
    let sweep = |grads: &mut Gathered<'_>| {
        let blocks = std::slice::from_ref(&block);
        let stages = [Stage { forward: &f, keep: Keep::Input(again) }];
        let swept = recompute::forward(blocks, once.clone(), &stages);
        recompute::backward(blocks, swept, once.clone(), &stages, grads);
    };
    let of = |times: usize| {
        let mut grads = Gathered::new(&|_| {});
        (0..times).for_each(|_| sweep(&mut grads));
        grads.into_params().get::<2>(block.wide.weight.id).unwrap()
    };
    let (single, double) = (of(1), of(2));
    double.into_data().assert_eq(&single.mul_scalar(2.0).into_data(), true);
}

#[test]
#[should_panic(expected = "stage 0 has no trainable parameter")]
fn a_model_without_autodiff_is_not_trained_in_silence() {
    let _alone = alone();
    let device = Device::flex();
    let blocks = [Block::new(4, &device)];
    let x = Tensor::<3>::ones([1, 2, 4], &device);
    let f = |block: &Block, x| block.forward(x);
    let again: &Again<'_, Block> = &|block, x, gradient| root(block.forward(x), gradient);
    let stages = [Stage { forward: &f, keep: Keep::Input(again) }];
    let swept = recompute::forward(&blocks, x.clone(), &stages);
    recompute::backward(&blocks, swept, x, &stages, &mut Gathered::new(&|_| {}));
}

#[test]
fn a_step_makes_no_second_copy_of_anything() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let model: Vec<Linear> = (0..8).map(|_| LinearConfig::new(128, 128).init(&device)).collect();
    let schedule = WarmupCosine { base_lr: 1e-3, min_lr: 0.0, warmup_steps: 0, total_steps: 10 };
    let config = OptimizerConfig {
        clip_norm: Some(1.0),
        ema: Some(EmaConfig::default()),
        ..OptimizerConfig::new(schedule)
    };
    let mut optimizer = Optimizer::new(&model, config).unwrap();
    let tensor_bytes = 128 * 128 * size_of::<f32>();
    (0..3).fold(model, |model, _| {
        let x = Tensor::<2>::ones([4, 128], &device);
        let mut tape = model.iter().fold(x, |x, layer| layer.forward(x)).mean().backward();
        let grads = GradientsParams::from_module(&mut tape, &model);
        drop(tape);
        let ((model, outcome), bytes) = peak_of(|| optimizer.step(model, grads).unwrap());
        assert!(outcome.applied);
        assert!(bytes < tensor_bytes, "{bytes} bytes beside the model's, moments' and averages'");
        model
    });
}
