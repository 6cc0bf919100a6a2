//! Our side of `cargo xtask parity`: features, loss and gradients of a CLIP, on the CPU in f32.
//!
//! `parity WEIGHTS INPUTS OUT GRADS`. WEIGHTS is any file that `weights::read` takes; INPUTS is a
//! safetensors file with `pixels [b, 3, h, w]` f32 and `token_ids [b, n]` i32. OUT gets
//! `image_features`, `text_features`, `loss` and `num_params`, GRADS the gradients under open_clip's
//! names and in its layouts.
#![expect(clippy::unwrap_used, reason = "a measuring tool ends at the first surprise")]

#[path = "../tests/support/mod.rs"]
mod support;

use burn::module::Module;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tbps_model::pos_embed::PosEmbedResize;
use tbps_model::weights::{self, Recipe};
use tbps_model::{Clip, objective};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [weights, inputs, out, grads] = args.try_into().expect("WEIGHTS INPUTS OUT GRADS");
    let inputs = std::fs::read(inputs).unwrap();
    let inputs = SafeTensors::deserialize(&inputs).unwrap();
    let (model, recipe) = load(&std::fs::read(weights).unwrap(), &inputs);
    let (pixels, token_ids) = support::inputs(&inputs, &model);

    let image = model.encode_image(pixels, FloatDType::F32);
    let text = model.encode_text(token_ids, FloatDType::F32);
    let features = [image.clone(), text.clone()].map(|features| features.inner().into_data());
    let loss = objective::itc(image, text, model.logit_scale());
    write(&out, features, &loss, model.num_params());
    let found = support::gradients(&model, loss.backward());
    std::fs::write(grads, weights::export(&found, &recipe).unwrap()).unwrap();
}

/// The model of a weights file, for the size of the images in `inputs`.
fn load(bytes: &[u8], inputs: &SafeTensors<'_>) -> (Clip, Recipe) {
    let weights = weights::read(bytes).unwrap();
    let mut config = weights.config().unwrap();
    let &[_, _, height, width] = inputs.tensor("pixels").unwrap().shape() else {
        panic!("pixels have four dimensions");
    };
    (config.vision.image_height, config.vision.image_width) = (height, width);
    let fitted = weights.fit(&config, PosEmbedResize::BicubicAntialias).unwrap();
    let model = config.init(0, &Device::flex().autodiff()).unwrap();
    let model = weights::load(model, fitted.tensors).unwrap();
    (model, Recipe { model: config, pixel_mean: [0.0; 3], pixel_std: [1.0; 3] })
}

fn write(path: &str, [image, text]: [TensorData; 2], loss: &Tensor<1>, num_params: usize) {
    let tensors = [
        ("image_features", image),
        ("text_features", text),
        ("loss", loss.clone().inner().into_data()),
        ("num_params", TensorData::from([num_params as i64])),
    ];
    let views = tensors.iter().map(|(name, data)| {
        let dtype = if data.dtype() == DType::I64 { Dtype::I64 } else { Dtype::F32 };
        (name, TensorView::new(dtype, data.shape().to_vec(), data.as_bytes()).unwrap())
    });
    safetensors::serialize_to_file(views, None, path.as_ref()).unwrap();
}
