//! Image-text contrastive loss (InfoNCE), as CLIP defines it.

use super::{constants, log_softmax, logits};
use burn::tensor::Tensor;

/// The mean of both directions' cross-entropies, each pair's partner being the one right answer.
///
/// `image [b, e]` and `text [b, e]` have unit length, `logit_scale [1]` is the factor itself. Two
/// pairs of one person in a batch count as negatives of each other: that is plain ITC.
pub fn itc(image: Tensor<2>, text: Tensor<2>, logit_scale: Tensor<1>) -> Tensor<1> {
    let logits = logits(image, text, logit_scale);
    let b = logits.dims()[0];
    let partner = Tensor::eye(b, &constants(&logits)); // [b, b]
    let t2i = log_softmax(logits.clone());
    let i2t = log_softmax(logits.transpose());
    ((t2i + i2t) * partner).sum() * (-0.5 / b as f64)
}
