//! The optimizer of a configuration.

use crate::config::{Config, Loss, Precision};
use crate::learner::Net;
use anyhow::Result;
use tbps_optim::adamw::AdamWConfig;
use tbps_optim::ema::EmaConfig;
use tbps_optim::grad_scaler::GradScalerConfig;
use tbps_optim::param_groups::{ParamGroup, Rule};
use tbps_optim::schedule::WarmupCosine;
use tbps_optim::{Optimizer, OptimizerConfig};

/// Embeddings, which like biases and norms take no weight decay.
const NO_DECAY: [&str; 3] = ["token_embedding", "pos_embed", "class_embedding"];

/// AdamW over all that is trained, with what the configuration adds to it.
pub(crate) fn new(net: &Net, config: &Config, steps_per_epoch: usize) -> Result<Optimizer> {
    let o = &config.optim;
    let steps = |epochs: f64| (epochs * steps_per_epoch as f64).round() as u64;
    let mut temperature =
        ParamGroup::new("logit_scale", vec![Rule::Path("log_logit_scale".to_owned())], 0.0);
    temperature.clamp_max = Some(config.model.logit_scale.max.ln());
    let mut groups = vec![temperature];
    if config.objective.has(Loss::Id) {
        groups.extend(classifier(config));
    }
    groups.extend(ParamGroup::without_decay_for(&NO_DECAY, o.weight_decay));
    let optimizer = Optimizer::new(
        net,
        OptimizerConfig {
            adamw: AdamWConfig { beta1: o.beta1, beta2: o.beta2, eps: o.eps },
            schedule: WarmupCosine {
                base_lr: o.lr,
                min_lr: o.min_lr,
                warmup_steps: steps(o.warmup_epochs),
                total_steps: steps(config.train.epochs as f64),
            },
            groups,
            scaler: (config.precision == Precision::AmpFp16).then(|| scaler(config)),
            clip_norm: (o.clip_norm > 0.0).then_some(o.clip_norm as f32),
            ema: config.ema.enabled.then(|| EmaConfig {
                decay: config.ema.decay,
                warmup: config.ema.warmup,
                ..EmaConfig::default()
            }),
        },
    )?;
    Ok(optimizer)
}

/// A random classifier learns faster than pretrained towers may.
fn classifier(config: &Config) -> [ParamGroup; 2] {
    let group = |path: &str, weight_decay| ParamGroup {
        lr_scale: config.optim.classifier_lr_scale,
        ..ParamGroup::new(path, vec![Rule::Path(path.to_owned())], weight_decay)
    };
    [group("classifier.weight", config.optim.weight_decay), group("classifier.bias", 0.0)]
}

fn scaler(config: &Config) -> GradScalerConfig {
    let s = &config.scaler;
    GradScalerConfig {
        init_scale: s.init_scale,
        growth_factor: s.growth_factor,
        backoff_factor: s.backoff_factor,
        growth_interval: s.growth_interval,
        min_scale: s.min_scale,
        max_scale: s.max_scale,
    }
}
