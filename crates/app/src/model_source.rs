//! A model to use, from a run or from a weights file.

use crate::cli::ModelArgs;
use crate::config::WeightsConfig;
use crate::learner::Policy;
use crate::model_file::{ModelFile, WeightsRecord};
use crate::{run_weights, say};
use anyhow::{Context, Result};
use burn::tensor::{Device, FloatDType};
use std::path::PathBuf;
use tbps_data::ImageSize;
use tbps_model::Clip;
use tbps_model::config::{Activation, ClipConfig};

/// A model with its weights.
pub(crate) struct ModelSource {
    pub(crate) clip: Clip,
    pub(crate) model: ClipConfig,
    /// What the towers' matrix products run in: a run's own, f32 of a file.
    pub(crate) compute: FloatDType,
    pub(crate) record: WeightsRecord,
}

impl ModelSource {
    /// Opens what the command line asks for, and says on standard error what was assumed.
    ///
    /// # Errors
    /// Those of [`run_weights::best`] and [`ModelFile`].
    pub(crate) fn open(args: &ModelArgs, device: &Device) -> Result<Self> {
        let (file, compute) = match (&args.run, &args.weights) {
            (Some(run), _) => {
                let (config, file) = run_weights::best(run, args.which)?;
                (file, Policy::new(&config).compute)
            }
            (None, Some(path)) => (ModelFile::read(path)?, FloatDType::F32),
            (None, None) => unreachable!("clap requires one of them"),
        };
        let model = fitted_model(&file, args.image_size, args.activation)?;
        // What a file says may be overridden here: that is what the flag is for.
        let settings = WeightsConfig {
            file: PathBuf::new(),
            pos_embed: args.pos_embed,
            allow_mismatch: args.activation.is_some(),
        };
        let shown = file.shown.clone();
        let clip = model.init(0, device)?;
        let (clip, record) = file.load_into(clip, &model, &settings)?;
        say(&format!("{shown}: {}", record.in_words(&model)));
        Ok(Self { clip, model, compute, record })
    }

    pub(crate) fn image_size(&self) -> ImageSize {
        let vision = &self.model.vision;
        ImageSize { height: vision.image_height, width: vision.image_width }
    }
}

/// The model of a file with another image size or activation, where those are given.
pub(crate) fn fitted_model(
    file: &ModelFile,
    image_size: Option<ImageSize>,
    activation: Option<Activation>,
) -> Result<ClipConfig> {
    let mut model = file.model()?;
    // Its own temperature, whatever a run may have fixed it to.
    model.logit_scale.learnable = true;
    if let Some(ImageSize { height, width }) = image_size {
        (model.vision.image_height, model.vision.image_width) = (height, width);
    }
    model.activation = activation.unwrap_or(model.activation);
    model.validate().with_context(|| file.shown.clone())?;
    Ok(model)
}
