//! Weights of one model made those of another that differs in its image size or temperature only.

use super::ClipWeights;
use crate::config::ClipConfig;
use crate::error::ModelError;
use crate::pos_embed::{self, PosEmbedResize};
use burn::tensor::TensorData;
use std::collections::BTreeMap;

const POS_EMBED: &str = "visual.stem.pos_embed";

/// Tensors that [`super::load`] takes for the model they were fitted to, if nothing else differs.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// f32 tensors under our names.
    pub tensors: BTreeMap<String, TensorData>,
    /// Rows and columns of the patch grid that the position embedding was resized from, if it was.
    pub resized_from: Option<[usize; 2]>,
}

impl ClipWeights {
    /// The tensors for the model of `config`: the position embedding resized to its grid, and the
    /// temperature its own where it is not trained.
    ///
    /// # Errors
    /// As [`ClipWeights::config`].
    pub fn fit(mut self, config: &ClipConfig, how: PosEmbedResize) -> Result<Fitted, ModelError> {
        let (from, to) = (self.config()?.vision.grid(), config.vision.grid());
        let mut resized_from = None;
        if let Some(data) = self.tensors.get_mut(POS_EMBED)
            && let &[positions, width] = data.shape().to_vec().as_slice()
            && positions == from[0] * from[1] + 1
            && from != to
            && let Ok(floats) = data.as_slice::<f32>()
        {
            let resized = pos_embed::resize(floats, width, from, to, how);
            *data = TensorData::new(resized, [to[0] * to[1] + 1, width]);
            resized_from = Some(from);
        }
        if !config.logit_scale.learnable {
            let log_scale = config.logit_scale.init.ln() as f32;
            self.tensors.insert("log_logit_scale".to_owned(), TensorData::from([log_scale]));
        }
        Ok(Fitted { tensors: self.tensors, resized_from })
    }
}
