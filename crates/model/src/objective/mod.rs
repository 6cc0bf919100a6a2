//! Objectives on features, all in f32. One file each.
//!
//! Letters: `b` pairs of the batch, `e` the embedding's width.

mod id;
mod itc;
mod sdm;

pub use id::IdClassifier;
pub use itc::itc;
pub use sdm::sdm;

use crate::ops::used;
use burn::tensor::{Device, Tensor};

/// `[b, b]` scaled cosine similarity, rows are texts and columns images.
fn logits(image: Tensor<2>, text: Tensor<2>, logit_scale: Tensor<1>) -> Tensor<2> {
    let reads = text.dtype();
    used("similarity", reads, text.matmul(image.transpose()) * logit_scale.unsqueeze())
}

/// Log-softmax over the rows of a matrix.
fn log_softmax(x: Tensor<2>) -> Tensor<2> {
    let shifted = x.clone() - x.detach().max_dim(1);
    shifted.clone() - shifted.exp().sum_dim(1).log()
}

/// The device of constants: a tensor's, without a tape.
fn constants(x: &Tensor<2>) -> Device {
    x.device().without_autodiff()
}

#[cfg(test)]
mod tests {
    //! Golden values computed with PyTorch in f64.

    use super::*;
    use burn::tensor::Int;

    /// Rows are texts. The features are chosen so that `text @ image^T` is this matrix.
    fn golden() -> (Tensor<2>, Tensor<2>) {
        let device = Device::flex();
        let s = [[0.30f32, 0.28, 0.10], [0.27, 0.31, 0.12], [0.09, 0.11, 0.29]];
        (Tensor::eye(3, &device), Tensor::from_floats(s, &device))
    }

    fn scale(value: f32) -> Tensor<1> {
        Tensor::from_floats([value], &Device::flex())
    }

    #[track_caller]
    fn check(loss: Tensor<1>, expected: f32) {
        let loss = loss.into_scalar::<f32>();
        assert!((loss - expected).abs() < 2e-6 * expected.max(1.0), "{loss} is not {expected}");
    }

    #[test]
    fn itc_golden() {
        let (image, text) = golden();
        check(itc(image, text, scale(50.0)), 0.140604);
    }

    #[test]
    fn sdm_golden() {
        for (pids, expected) in [([0, 1, 2], 3.992521), ([0, 0, 1], 0.293287)] {
            let (image, text) = golden();
            let pids = Tensor::<1, Int>::from_ints(pids, &Device::flex());
            check(sdm(image, text, scale(50.0), pids), expected);
        }
    }

    #[test]
    fn uniform_similarity_gives_the_entropy() {
        let zeros = || Tensor::<2>::zeros([64, 8], &Device::flex());
        check(itc(zeros(), zeros(), scale(50.0)), 4.158883);
        let pids = Tensor::<1, Int>::arange(0..64, &Device::flex());
        check(sdm(zeros(), zeros(), scale(50.0), pids), 27.947949);
    }
}
