//! A small CLIP on the device and on the CPU: forward, backward, an AMP step, recomputation, EMA.

use super::Doctor;
use super::reference::values;
use crate::config::Config;
use crate::device::DeviceName;
use crate::learner::{Net, image_size, tokens};
use crate::optimizer;
use anyhow::{Context, Result, ensure};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use burn::train::TrainStep;
use tbps_data::Batch;

/// A model whose sides are no powers of two, and a loss scale at which its gradients are finite.
const MODEL: &str = r#"
[data]
root = "none is read"
[model]
embed_dim = 24
[model.logit_scale]
init = 14.3
learnable = true
[model.vision]
image_height = 40
image_width = 24
patch_size = 8
width = 48
layers = 2
heads = 3
[model.text]
vocab_size = 1000
context_length = 19
width = 36
layers = 2
heads = 2
[optim]
lr = 1e-3
warmup_epochs = 0.0
[scaler]
init_scale = 1024.0
[ema]
enabled = true
"#;
const SAMPLES: usize = 7;
/// Layers in f32, one after the other, and a loss at the temperature of the model.
const F32_DEPTH: f64 = 20.0;
/// What f16 products may change of features, and of gradients by their norm.
const AMP_FEATURES: f64 = 1e-2;
const AMP_GRADIENTS: f64 = 5e-2;

pub(super) fn run(doctor: &mut Doctor) -> Result<()> {
    let cpu = DeviceName::Flex.open()?;
    let device = doctor.device.clone();
    let at_most = F32_DEPTH * doctor.f32_product();

    let config = config(&[])?;
    let expected = wide(&features(&config, &cpu)?);
    doctor.check("forward", "CLIP f32".into(), &features(&config, &device)?, &expected, at_most);
    let amp = self::config(&["precision=amp-fp16"])?;
    let found = features(&amp, &device)?;
    doctor.check("forward", "CLIP f16".into(), &found, &expected, AMP_FEATURES);

    let reference = Trained::new(&config, &cpu)?;
    let expected = wide(&reference.gradients);
    let plain = Trained::new(&config, &device)?;
    doctor.check("backward", "CLIP f32".into(), &plain.gradients, &expected, 5.0 * at_most);
    let recomputed = Trained::new(&self::config(&["recompute=block"])?, &device)?;
    let own = wide(&plain.gradients);
    doctor.check("recomputation", "by block, f32".into(), &recomputed.gradients, &own, 1e-6);
    let scaled = Trained::new(&amp, &device)?;
    doctor.check(
        "backward",
        "CLIP f16, scaled".into(),
        &scaled.gradients,
        &expected,
        AMP_GRADIENTS,
    );

    // The first update moves a parameter by the learning rate, up or down: moves are compared in
    // units of it, where the gradient is too large for its error to turn it around.
    let largest = reference.gradients.iter().fold(0.0_f32, |max, g| max.max(g.abs()));
    let strong_from = AMP_GRADIENTS as f32 * largest;
    let moves = |trained: &Trained| -> Vec<f32> {
        let strong = reference.gradients.iter().map(|g| g.abs() > strong_from);
        let moves = trained.before.iter().zip(&trained.after);
        moves.zip(strong).filter(|(_, s)| *s).map(|((b, a), _)| (a - b) * 1e3).collect()
    };
    let expected = wide(&moves(&reference));
    doctor.check("AdamW step", "f32".into(), &moves(&plain), &expected, 1e-2);
    doctor.check("AdamW step", "f16, scaled".into(), &moves(&scaled), &expected, 1e-2);
    doctor.check("EMA", "second update".into(), &plain.average, &plain.expected_average(), 1e-6);
    Ok(())
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

fn config(settings: &[&str]) -> Result<Config> {
    let settings: Vec<String> = settings.iter().map(|&text| text.to_owned()).collect();
    Config::parse(MODEL, &settings, "the doctor's model")
}

/// Captions of several lengths and noise for images.
fn batch(config: &Config) -> Batch {
    let text = &config.model.text;
    let row = |sample: usize| {
        let mut row = vec![0; text.context_length];
        row[0] = text.vocab_size as i32 - 2;
        let length = 1 + (sample * 5) % (text.context_length - 2);
        (1..=length).for_each(|at| row[at] = ((sample * 71 + at * 13) % 900) as i32);
        row[length + 1] = text.vocab_size as i32 - 1;
        row
    };
    Batch {
        len: SAMPLES,
        pixels: values(SAMPLES * image_size(config).num_elements(), 21),
        token_ids: (0..SAMPLES).flat_map(row).collect(),
        pids: (0..SAMPLES as i64).collect(),
        index: (0..SAMPLES as u32).collect(),
        digest: [0; 32],
    }
}

/// Image features and then text features of [`batch`].
fn features(config: &Config, device: &Device) -> Result<Vec<f32>> {
    let clip = config.model.init(5, device)?;
    let compute = match config.precision {
        crate::config::Precision::Fp32 => FloatDType::F32,
        _ => FloatDType::F16,
    };
    let batch = batch(config);
    let size = image_size(config);
    let pixels = TensorData::new(batch.pixels, [SAMPLES, 3, size.height, size.width]);
    let images = clip.encode_image(Tensor::from_data(pixels, device), compute);
    let texts = clip.encode_text(tokens(&batch.token_ids, SAMPLES, device), compute);
    let data = Tensor::cat(vec![images, texts], 0).into_data();
    Ok(data.as_slice::<f32>().context("features are f32")?.to_vec())
}

/// Two updates, all as flat lists in the order of the parameters.
struct Trained {
    /// Of the first update, without the loss scale.
    gradients: Vec<f32>,
    before: Vec<f32>,
    /// After the first update.
    after: Vec<f32>,
    /// After the second.
    last: Vec<f32>,
    average: Vec<f32>,
}

impl Trained {
    fn new(config: &Config, device: &Device) -> Result<Self> {
        let device = device.clone().autodiff();
        let clip = config.model.init(5, &device)?;
        let mut net = Net::new(clip, config, SAMPLES);
        let mut optimizer = optimizer::new(&net, config, 100)?;
        let before = parameters(&net);
        let (mut gradients, mut after) = (Vec::new(), Vec::new());
        for update in 0..2 {
            let scale = optimizer.loss_scale();
            net.policy.loss_scale = scale;
            let output = TrainStep::step(&net, batch(config));
            if update == 0 {
                gradients = self::gradients(&net, &output.grads);
                gradients.iter_mut().for_each(|gradient| *gradient /= scale);
            }
            let (stepped, outcome) = optimizer.step(net, output.grads)?;
            ensure!(outcome.applied, "a gradient of the doctor's model is not finite");
            net = stepped;
            if update == 0 {
                after = parameters(&net);
            }
        }
        let ema = optimizer.ema().context("the doctor's model has an average")?;
        let average = parameters(&ema.module(&net));
        Ok(Self { gradients, before, after, last: parameters(&net), average })
    }

    /// The first update's weights, moved toward the second's by timm's schedule of decays.
    fn expected_average(&self) -> Vec<f64> {
        let decay = 1.0 - 2.0_f64.powf(-2.0 / 3.0);
        let mix = |(&first, &second): (&f32, &f32)| {
            decay * f64::from(first) + (1.0 - decay) * f64::from(second)
        };
        self.after.iter().zip(&self.last).map(mix).collect()
    }
}

fn parameters<M: Module>(module: &M) -> Vec<f32> {
    struct Values(Vec<f32>);
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f32>());
        }
    }
    let mut values = Values(Vec::new());
    module.visit(&mut values);
    values.0
}

fn gradients(net: &Net, grads: &GradientsParams) -> Vec<f32> {
    struct Values<'a>(&'a GradientsParams, Vec<f32>);
    impl ModuleVisitor for Values<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                self.1.extend(gradient.into_data().iter::<f32>());
            }
        }
    }
    let mut values = Values(grads, Vec::new());
    net.visit(&mut values);
    values.1
}
