//! The ranges of the settings. What no run could be made of is refused here, by its key, before
//! anything else happens. Upper bounds are far above any use: they catch typing errors.

use super::{Config, Loss, SplitName};
use tbps_data::{ImageSize, Tokenizer};
use toml::{Table, Value};

/// A key, what its value must be, and whether it is.
type Rule = (&'static str, &'static str, bool);

const MAX_THREADS: usize = 256;
const MAX_EPOCHS: usize = 1_000_000;
const MAX_BATCH_SIZE: usize = 65_536;
const MAX_WIDTH: usize = 65_536;
const MAX_LAYERS: usize = 1_024;
const MAX_CONTEXT_LENGTH: usize = 1_024;

/// Refuses the first setting that is out of its range; `table` holds the values as they were given.
pub(super) fn validate(config: &Config, table: &Table) -> Result<(), String> {
    let rules = [
        data(config),
        model(config),
        objective(config),
        train(config),
        optim(config),
        eval(config),
    ];
    match rules.iter().flatten().find(|(_, _, holds)| !holds) {
        Some((key, expected, _)) => {
            let value = lookup(table, key).map_or_else(String::new, shown);
            Err(format!("{key} = {value} must be {expected}"))
        }
        None => config.model.validate().map_err(|e| e.to_string()),
    }
}

fn lookup<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let mut keys = key.split('.');
    let first = table.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}

/// As TOML, but with exponents where those are shorter.
fn shown(value: &Value) -> String {
    value.as_float().map_or_else(|| value.to_string(), |float| format!("{float:?}"))
}

fn data(config: &Config) -> Vec<Rule> {
    let (d, a) = (&config.data, &config.augment);
    let probability = |x: f64| (0.0..=1.0).contains(&x);
    vec![
        (
            "data.holdout_ids",
            "0 with eval.split = \"test\", which selects on no val split",
            d.holdout_ids == 0 || config.eval.split == SplitName::Val,
        ),
        (
            "data.holdout_seed",
            "0 with data.holdout_ids = 0, where it has no effect",
            d.holdout_ids > 0 || d.holdout_seed == 0,
        ),
        ("data.threads", "in 1 ..= 256", (1..=MAX_THREADS).contains(&d.threads)),
        ("augment.flip_probability", "in 0 ..= 1", probability(a.flip_probability)),
        ("augment.erase_probability", "in 0 ..= 1", probability(a.erase_probability)),
        ("augment.pad_px", "at most 4096", a.pad_px <= ImageSize::MAX_SIDE),
    ]
}

/// Bounds that the model itself does not have: those of the other crates, and of memory.
fn model(config: &Config) -> Vec<Rule> {
    let (m, v, t) = (&config.model, &config.model.vision, &config.model.text);
    let vocab = Tokenizer::MIN_VOCAB_SIZE..=Tokenizer::CLIP_VOCAB_SIZE;
    let context = 3..=MAX_CONTEXT_LENGTH;
    vec![
        ("model.embed_dim", "at most 65536", m.embed_dim <= MAX_WIDTH),
        ("model.vision.image_height", "at most 4096", v.image_height <= ImageSize::MAX_SIDE),
        ("model.vision.image_width", "at most 4096", v.image_width <= ImageSize::MAX_SIDE),
        ("model.vision.width", "at most 65536", v.width <= MAX_WIDTH),
        ("model.vision.layers", "at most 1024", v.layers <= MAX_LAYERS),
        (
            "model.text.vocab_size",
            "from 514 (bytes only) to 49408 (CLIP's)",
            vocab.contains(&t.vocab_size),
        ),
        ("model.text.context_length", "from 3 to 1024", context.contains(&t.context_length)),
        ("model.text.width", "at most 65536", t.width <= MAX_WIDTH),
        ("model.text.layers", "at most 1024", t.layers <= MAX_LAYERS),
    ]
}

fn objective(config: &Config) -> Vec<Rule> {
    let o = &config.objective;
    let once = (1..o.losses.len()).all(|i| !o.losses[..i].contains(&o.losses[i]));
    let scaled = o.has(Loss::Itc) || o.has(Loss::Sdm);
    vec![
        (
            "objective.losses",
            "one or more of itc, sdm and id, each once",
            once && !o.losses.is_empty(),
        ),
        (
            "model.logit_scale.learnable",
            "false with objective.losses = [\"id\"], which has no logit scale",
            scaled || !config.model.logit_scale.learnable,
        ),
    ]
}

fn train(config: &Config) -> Vec<Rule> {
    let t = &config.train;
    vec![
        ("train.epochs", "in 1 ..= 1000000", (1..=MAX_EPOCHS).contains(&t.epochs)),
        ("train.batch_size", "in 2 ..= 65536", (2..=MAX_BATCH_SIZE).contains(&t.batch_size)),
        ("train.micro_batch", "0, or less than train.batch_size", t.micro_batch < t.batch_size),
        ("train.max_hours", "0 or positive", t.max_hours >= 0.0 && t.max_hours.is_finite()),
        (
            "train.stop_at_target",
            "false without eval.targets",
            !t.stop_at_target || !config.eval.targets.is_empty(),
        ),
        (
            "train.checkpoint_every_min",
            "0 or positive",
            t.checkpoint_every_min >= 0.0 && t.checkpoint_every_min.is_finite(),
        ),
        ("train.log_every_steps", "at least 1", t.log_every_steps >= 1),
        ("train.max_consecutive_skips", "at least 1", t.max_consecutive_skips >= 1),
    ]
}

fn optim(config: &Config) -> Vec<Rule> {
    let (o, s) = (&config.optim, &config.scaler);
    let fraction = |x: f64| (0.0..1.0).contains(&x);
    // The optimizer computes in f32, which holds less than f64.
    let positive = |x: f64| x as f32 > 0.0 && (x as f32).is_finite();
    vec![
        ("optim.lr", "positive", positive(o.lr)),
        ("optim.min_lr", "in 0 ..= optim.lr", (0.0..=o.lr).contains(&o.min_lr)),
        (
            "optim.warmup_epochs",
            "at least 0 and less than train.epochs",
            o.warmup_epochs >= 0.0 && o.warmup_epochs < config.train.epochs as f64,
        ),
        ("optim.weight_decay", "0 or positive", o.weight_decay == 0.0 || positive(o.weight_decay)),
        ("optim.beta1", "in 0 .. 1", fraction(o.beta1)),
        ("optim.beta2", "in 0 .. 1", fraction(o.beta2)),
        ("optim.eps", "positive", positive(o.eps)),
        ("optim.clip_norm", "0 or positive", o.clip_norm == 0.0 || positive(o.clip_norm)),
        ("optim.classifier_lr_scale", "positive", positive(o.classifier_lr_scale)),
        ("scaler.min_scale", "positive", positive(s.min_scale.into())),
        (
            "scaler.max_scale",
            "at least scaler.min_scale",
            s.max_scale >= s.min_scale && s.max_scale.is_finite(),
        ),
        (
            "scaler.init_scale",
            "between scaler.min_scale and scaler.max_scale",
            (s.min_scale..=s.max_scale).contains(&s.init_scale),
        ),
        (
            "scaler.growth_factor",
            "more than 1",
            s.growth_factor > 1.0 && s.growth_factor.is_finite(),
        ),
        (
            "scaler.backoff_factor",
            "between 0 and 1",
            s.backoff_factor > 0.0 && s.backoff_factor < 1.0,
        ),
        ("scaler.growth_interval", "at least 1", s.growth_interval >= 1),
        ("ema.decay", "in 0 .. 1", fraction(config.ema.decay)),
    ]
}

fn eval(config: &Config) -> Vec<Rule> {
    let e = &config.eval;
    vec![
        ("eval.batch_size", "in 1 ..= 65536", (1..=MAX_BATCH_SIZE).contains(&e.batch_size)),
        (
            "eval.split",
            "val, or test with eval.allow_test_selection = true",
            e.split == SplitName::Val || e.allow_test_selection,
        ),
        (
            "eval.targets",
            "percentages above 0 and up to 100",
            e.targets.iter().all(|r1| *r1 > 0.0 && *r1 <= 100.0),
        ),
    ]
}
