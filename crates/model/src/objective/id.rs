//! Identity loss: one classifier of persons over both kinds of features (dual-path CNN, Zheng et
//! al. 2017; IRRA, CVPR 2023).

use crate::init::Init;
use crate::ops::cross_entropy;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};

/// IRRA's standard deviation of the initial weight.
const STD: f64 = 1e-3;

/// A linear classifier of the persons seen in training, shared by images and texts.
///
/// It is trained beside the model and is no part of it: nothing but [`IdClassifier::loss`] uses it.
#[derive(Module, Debug)]
pub struct IdClassifier {
    /// `[embed_dim, num_ids]`
    pub weight: Param<Tensor<2>>,
    /// `[num_ids]`
    pub bias: Param<Tensor<1>>,
}

impl IdClassifier {
    /// A random weight and a zero bias; `seed` may be the model's, whose draws are others.
    pub fn new(embed_dim: usize, num_ids: usize, seed: u64, device: &Device) -> Self {
        let mut init = Init::apart(seed, device);
        Self { weight: init.normal([embed_dim, num_ids], STD), bias: init.constant([num_ids], 0.0) }
    }

    /// Cross-entropy of the persons, averaged over images and texts alike.
    ///
    /// `image [b, e]` and `text [b, e]` are features as the towers give them, not normalised;
    /// `labels [b]` are in `0..num_ids`.
    pub fn loss(&self, image: Tensor<2>, text: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
        let features = Tensor::cat(vec![image, text], 0); // [2b, e]
        let logits = features.matmul(self.weight.val()) + self.bias.val().unsqueeze();
        cross_entropy(logits, Tensor::cat(vec![labels.clone(), labels], 0))
    }
}
