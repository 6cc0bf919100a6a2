//! Image-text contrastive loss (InfoNCE), as CLIP defines it.

use super::{constants, logits};
use crate::ops::cross_entropy;
use burn::tensor::Tensor;

/// The mean of both directions' cross-entropies, each pair's partner being the one right answer.
///
/// `image [b, e]` and `text [b, e]` have unit length, `logit_scale [1]` is the factor itself. Two
/// pairs of one person in a batch count as negatives of each other: that is plain ITC.
pub fn itc(image: Tensor<2>, text: Tensor<2>, logit_scale: Tensor<1>) -> Tensor<1> {
    let logits = logits(image, text, logit_scale);
    let partner = Tensor::arange(0..logits.dims()[0] as i64, &constants(&logits)); // [b]
    let t2i = cross_entropy(logits.clone(), partner.clone());
    let i2t = cross_entropy(logits.transpose(), partner);
    (t2i + i2t) * 0.5
}
