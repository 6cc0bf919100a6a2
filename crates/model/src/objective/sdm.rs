//! Similarity distribution matching (IRRA, CVPR 2023, equations 5 to 7).

use super::{log_softmax, logits};
use burn::tensor::{Int, Tensor};

/// Keeps the logarithm of the true distribution finite (IRRA's).
const EPSILON: f64 = 1e-8;

/// KL divergence from the batch's similarity distribution to that of the identities, summed over
/// both directions and averaged over rows.
///
/// `image [b, e]` and `text [b, e]` have unit length, `logit_scale [1]` is the factor itself (IRRA
/// uses 50), `pids [b]` name the persons.
pub fn sdm(
    image: Tensor<2>,
    text: Tensor<2>,
    logit_scale: Tensor<1>,
    pids: Tensor<1, Int>,
) -> Tensor<1> {
    let logits = logits(image, text, logit_scale);
    let b = logits.dims()[0];
    let same = pids.clone().reshape([b, 1]).equal(pids.reshape([1, b])).float(); // [b, b]
    let target = (same.clone() / same.sum_dim(1) + EPSILON).log();
    let direction = |logits: Tensor<2>| {
        let log_p = log_softmax(logits);
        (log_p.clone().exp() * (log_p - target.clone())).sum() / b as f64
    };
    direction(logits.clone()) + direction(logits.transpose())
}
