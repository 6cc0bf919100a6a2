//! The whole model, features, loss and every gradient, against PyTorch in f64 with the same
//! parameters: open_clip, transformers and OpenAI's code, which agree (see the fixture's README).
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

#[path = "fixtures/clip_sources/mod.rs"]
mod clip_sources;
mod support;

use burn::tensor::{Device, FloatDType, Tensor, Tolerance};
use safetensors::{Dtype, SafeTensors};
use tbps_model::objective;
use tbps_model::pos_embed::PosEmbedResize;
use tbps_model::weights::{self, Recipe};

/// Largest difference of an element of a resized position embedding.
const POSITIONS: f32 = 1e-6;
/// Largest difference of an element of a feature of unit length.
const FEATURES: f64 = 2e-5;
/// Relative error of the loss.
const LOSS: f64 = 1e-5;
/// Error of a gradient, as a multiple of that of PyTorch's own f32 gradient.
const GRADIENT: f64 = 2.0;
/// What no gradient's error must be below, relative to the norm of all gradients.
const GRADIENT_FLOOR: f64 = 1e-6;

/// Sums of a gradient's sketch.
const BUCKETS: usize = 256;

#[test]
fn a_square_image_is_pytorchs() {
    check("32x32", [32, 32]);
}

#[test]
fn a_tall_image_is_pytorchs() {
    check("48x32", [48, 32]);
}

fn check(size: &str, image: [usize; 2]) {
    let oracle = clip_sources::read(&format!("oracle_{size}.safetensors"));
    let oracle = SafeTensors::deserialize(&oracle).unwrap();
    let weights = weights::read(&clip_sources::read("open_clip_model.safetensors")).unwrap();
    let mut config = weights.config().unwrap();
    [config.vision.image_height, config.vision.image_width] = image;
    let fitted = weights.fit(&config, PosEmbedResize::BicubicAntialias).unwrap();
    let model = config.init(0, &Device::flex().autodiff()).unwrap();
    let model = weights::load(model, fitted.tensors).unwrap();
    let theirs = support::floats(&oracle, "visual.positional_embedding");
    let ours = model.visual.stem.pos_embed.val().into_data();
    ours.assert_approx_eq::<f32>(&theirs, Tolerance::absolute(POSITIONS));

    let (pixels, token_ids) = support::inputs(&oracle, &model);
    let image = model.encode_image(pixels, FloatDType::F32);
    let text = model.encode_text(token_ids, FloatDType::F32);
    close("image_features", &image, &oracle);
    close("text_features", &text, &oracle);

    let loss = objective::itc(image, text, model.logit_scale());
    let (found, expected) = (f64::from(loss.clone().into_scalar::<f32>()), scalar(&oracle, "loss"));
    assert!((found - expected).abs() <= LOSS * expected, "loss {found} is not {expected}");

    let grads = support::gradients(&model, loss.backward());
    let recipe = Recipe { model: config, pixel_mean: [0.0; 3], pixel_std: [1.0; 3] };
    let exported = weights::export(&grads, &recipe).unwrap();
    let exported = SafeTensors::deserialize(&exported).unwrap();
    let floor = GRADIENT_FLOOR * scalar(&oracle, "grad_norm");
    let names = oracle.names().into_iter().filter_map(|name| name.strip_prefix("grad."));
    let checked = names.map(|name| {
        let ours = sketch(support::floats(&exported, name).as_slice().unwrap());
        let exact = doubles(&oracle, &format!("grad.{name}"));
        assert_eq!(ours.len(), exact.len(), "{name}");
        let difference = ours.iter().zip(exact).map(|(ours, exact)| (ours - exact).powi(2));
        let error = difference.sum::<f64>().sqrt();
        let bound = floor.max(GRADIENT * scalar(&oracle, &format!("grad_error_f32.{name}")));
        assert!(error <= bound, "{name}: the gradient is off by {error}, more than {bound}");
    });
    assert_eq!(checked.count(), grads.len(), "every gradient is compared");
}

fn close(name: &str, features: &Tensor<2>, oracle: &SafeTensors<'_>) {
    let found: Vec<f32> = features.clone().inner().into_data().try_to_vec().unwrap();
    let expected = doubles(oracle, name);
    assert_eq!(found.len(), expected.len(), "{name}");
    let errors = found.iter().zip(expected).map(|(found, want)| (f64::from(*found) - want).abs());
    let worst = errors.fold(0.0, f64::max);
    assert!(worst <= FEATURES, "{name}: off by {worst}");
}

/// As the fixture's README has it.
fn sketch(values: &[f32]) -> Vec<f64> {
    let mut sums = vec![0.0; values.len().min(BUCKETS)];
    for (i, value) in values.iter().enumerate() {
        let negative = splitmix(i as u64 + 1) >> 63 == 1;
        sums[i % BUCKETS] += f64::from(if negative { -value } else { *value });
    }
    sums
}

/// The `n`-th output of splitmix64 seeded with 0, up to a last step that leaves bit 63 alone.
fn splitmix(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

fn scalar(file: &SafeTensors<'_>, name: &str) -> f64 {
    doubles(file, name)[0]
}

fn doubles(file: &SafeTensors<'_>, name: &str) -> Vec<f64> {
    let view = file.tensor(name).unwrap();
    assert_eq!(view.dtype(), Dtype::F64, "{name}");
    view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}
