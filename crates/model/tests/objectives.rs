//! Each loss and its gradients, from features that are not normalised, against PyTorch in f64.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use burn::module::Module;
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use safetensors::SafeTensors;
use tbps_model::clip::normalize;
use tbps_model::objective::{self, IdClassifier};

/// Error relative to the largest element of loss or gradient: a few roundings of f32.
const TOLERANCE: f32 = 3e-6;

const FIXTURE: &[u8] = include_bytes!("fixtures/objectives/objectives.safetensors");

#[test]
fn itc_is_pytorchs() {
    let leaves = Leaves::new();
    let loss = objective::itc(leaves.unit_image(), leaves.unit_text(), leaves.logit_scale());
    leaves.compare("itc", loss);
}

#[test]
fn sdm_is_pytorchs() {
    let leaves = Leaves::new();
    let (image, text, scale) = (leaves.unit_image(), leaves.unit_text(), leaves.logit_scale());
    leaves.compare("sdm", objective::sdm(image, text, scale, labels()));
}

#[test]
fn id_is_pytorchs() {
    let leaves = Leaves::new();
    let loss = leaves.classifier.loss(leaves.image.clone(), leaves.text.clone(), labels());
    leaves.compare("id", loss);
}

/// A sum of losses has the sum of their gradients, also at what they share.
#[test]
fn losses_add_up() {
    let leaves = Leaves::new();
    let itc = objective::itc(leaves.unit_image(), leaves.unit_text(), leaves.logit_scale());
    let id = leaves.classifier.loss(leaves.image.clone(), leaves.text.clone(), labels());
    let tape = (itc + id).backward();
    let sum = fixture::<2>("itc.grad_image") + fixture("id.grad_image");
    assert_close("image", leaves.image.grad(&tape).unwrap(), sum);
}

#[test]
fn a_classifier_is_drawn_apart_from_a_model_of_its_seed() {
    let device = Device::flex();
    let first = |seed| IdClassifier::new(4, 3, seed, &device).weight.val().into_data();
    first(7).assert_eq(&first(7), true);
    let values = |data: TensorData| data.try_to_vec::<f32>().unwrap();
    let (weight, other) = (values(first(7)), values(first(8)));
    assert_ne!(weight, other);
    assert!(weight.iter().all(|w| *w != 0.0 && w.abs() < 0.006), "{weight:?} has std 0.001");
    let model = tbps_model::config::ClipConfig::tiny().init(7, &device).unwrap();
    let patches = values(model.visual.stem.patch_embed.val().into_data());
    let ratio = |i: usize| weight[i] / patches[i];
    assert!((ratio(0) - ratio(1)).abs() > 1e-6, "the same draws, scaled");
}

/// The fixture's inputs as leaves of a tape.
struct Leaves {
    image: Tensor<2>,
    text: Tensor<2>,
    log_logit_scale: Tensor<1>,
    classifier: IdClassifier,
}

impl Leaves {
    fn new() -> Self {
        let classifier = IdClassifier::new(8, 5, 0, &Device::flex().autodiff());
        let tensors = [("weight", data("weight")), ("bias", data("bias"))];
        let tensors = tensors.map(|(name, data)| (name.to_owned(), data)).into();
        Self {
            image: leaf("image"),
            text: leaf("text"),
            log_logit_scale: leaf("log_logit_scale"),
            classifier: tbps_model::weights::load(classifier, tensors).unwrap(),
        }
    }

    fn unit_image(&self) -> Tensor<2> {
        normalize(self.image.clone())
    }

    fn unit_text(&self) -> Tensor<2> {
        normalize(self.text.clone())
    }

    fn logit_scale(&self) -> Tensor<1> {
        self.log_logit_scale.clone().exp()
    }

    /// Compares a loss and its gradients; an input that it doesn't depend on must have none.
    fn compare(&self, name: &str, loss: Tensor<1>) {
        assert_close(name, loss.clone().inner(), fixture(&format!("{name}.loss")));
        let tape = loss.backward();
        compare_grad(name, "image", &self.image, &tape);
        compare_grad(name, "text", &self.text, &tape);
        compare_grad(name, "log_logit_scale", &self.log_logit_scale, &tape);
        compare_grad(name, "weight", &self.classifier.weight.val(), &tape);
        compare_grad(name, "bias", &self.classifier.bias.val(), &tape);
        assert_eq!(self.classifier.num_params(), 8 * 5 + 5);
    }
}

fn compare_grad<const D: usize>(loss: &str, input: &str, leaf: &Tensor<D>, tape: &Gradients) {
    let name = format!("{loss}.grad_{input}");
    let expected = SafeTensors::deserialize(FIXTURE).unwrap().tensor(&name).is_ok();
    match leaf.grad(tape) {
        Some(grad) if expected => assert_close(&name, grad, fixture(&name)),
        found => assert_eq!(found.is_some(), expected, "{name}"),
    }
}

fn labels() -> Tensor<1, Int> {
    let file = SafeTensors::deserialize(FIXTURE).unwrap();
    let bytes = file.tensor("labels").unwrap().data().as_chunks::<8>().0;
    let values: Vec<i64> = bytes.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    Tensor::from_data(TensorData::new(values, [6]), &Device::flex())
}

fn leaf<const D: usize>(name: &str) -> Tensor<D> {
    Tensor::from_inner(fixture(name)).require_grad()
}

fn fixture<const D: usize>(name: &str) -> Tensor<D> {
    Tensor::from_data(data(name), &Device::flex())
}

fn data(name: &str) -> TensorData {
    let file = SafeTensors::deserialize(FIXTURE).unwrap();
    let view = file.tensor(name).unwrap();
    let values = view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    TensorData::new(values.collect::<Vec<_>>(), view.shape().to_vec())
}

fn assert_close<const D: usize>(name: &str, got: Tensor<D>, want: Tensor<D>) {
    let largest = want.clone().abs().max().into_scalar::<f32>();
    let error = (got - want).abs().max().into_scalar::<f32>() / largest;
    assert!(error <= TOLERANCE, "{name}: off by {error} of the largest element");
}
