//! Settings that no run could be made of, in the file and by `--set`.

use crate::support::{tbps, train_command};
use crate::{USAGE, folder, refused_in};
use std::fs;

#[test]
fn bad_settings() {
    let folder = folder();
    for (setting, expected) in [
        ("optim.rate=1", "--set optim.rate=1: unknown key `optim.rate`; configs/base.toml lists"),
        ("optim.lr.x=1", "unknown key `optim.lr.x`"),
        ("lr", "--set lr: expected KEY=VALUE"),
        ("optim=1", "`optim` is a section"),
        ("optim.lr=fast", "`optim.lr` takes a value of type float, and \"fast\" is of"),
        ("train.epochs=1.5", "takes a value of type integer, and 1.5 is of type float"),
        ("train.epochs=-1", "train.epochs: invalid value: integer `-1`"),
        ("scaler.growth_interval=5000000000", "scaler.growth_interval: invalid value"),
        (
            "precision=fp8",
            "precision: unknown variant `fp8`, expected one of `fp32`, `amp-fp16`, `amp-bf16`",
        ),
        ("train.max_hours=-1.0", "train.max_hours = -1.0 must be 0 or positive"),
        ("recompute=every-1", "recompute: `every-1` is none of off, block, attention, and every-K"),
        ("train.micro_batch=64", "train.micro_batch = 64 must be 0, or less than train.batch_size"),
        ("weights.pos_embed=cubic", "weights.pos_embed: unknown variant `cubic`"),
        ("eval.targets=['high']", "eval.targets[0]: invalid type"),
        ("eval.targets=[120]", "eval.targets = [120] must be percentages"),
        ("eval.targets=[nan]", "eval.targets = [nan] must be percentages"),
        ("eval.split=test", "eval.split = \"test\" must be val, or test with"),
        ("eval.batch_size=0", "eval.batch_size = 0 must be in 1 ..= 65536"),
        (
            "data.root=",
            "no data set: add --set data.root=DIR, the folder that holds the annotation",
        ),
        ("data.dataset=market", "data.dataset: unknown variant `market`, expected one of `auto`"),
        ("data.sampler=pk", "data.sampler: unknown variant `pk`, expected `shuffle` or"),
        ("data.holdout_ids=-1", "data.holdout_ids: invalid value: integer `-1`"),
        ("data.holdout_seed=1", "data.holdout_seed = 1 must be 0 with data.holdout_ids = 0"),
        ("data.threads=0", "data.threads = 0 must be in 1 ..= 256"),
        ("data.threads=100000", "data.threads = 100000 must be in 1 ..= 256"),
        ("augment.pad_px=5000", "augment.pad_px = 5000 must be at most 4096"),
        ("augment.flip_probability=1.1", "augment.flip_probability = 1.1 must be in 0 ..= 1"),
        ("train.epochs=0", "train.epochs = 0 must be in 1 ..= 1000000"),
        ("train.batch_size=1", "train.batch_size = 1 must be in 2 ..= 65536"),
        ("optim.lr=-1", "optim.lr = -1.0 must be positive"),
        ("optim.lr=nan", "optim.lr = NaN must be positive"),
        ("optim.weight_decay=inf", "optim.weight_decay = inf must be 0 or positive"),
        ("optim.eps=1e-60", "optim.eps = 1e-60 must be positive"),
        ("optim.clip_norm=1e300", "optim.clip_norm = 1e300 must be 0 or positive"),
        ("optim.warmup_epochs=2", "optim.warmup_epochs = 2.0 must be at least 0 and less than"),
        ("scaler.max_scale=inf", "scaler.max_scale = inf must be at least scaler.min_scale"),
        ("optim.classifier_lr_scale=0", "optim.classifier_lr_scale = 0.0 must be positive"),
        (
            "objective.losses=[]",
            "objective.losses = [] must be one or more of itc, sdm and id, each once",
        ),
        (
            "objective.losses=['itc', 'id', 'itc']",
            "objective.losses = [\"itc\", \"id\", \"itc\"] must be one or more of itc, sdm and id, each \
             once",
        ),
        (
            "objective.losses=['itc', 'cmpm']",
            "objective.losses[1]: unknown variant `cmpm`, expected one of `itc`, `sdm`, `id`",
        ),
        (
            "objective.losses=itc",
            "`objective.losses` takes a value of type array, and \"itc\" is of type string",
        ),
        (
            "objective.losses=['id']",
            "model.logit_scale.learnable = true must be false with objective.losses = [\"id\"], \
             which has no logit scale",
        ),
        ("ema.decay=1", "ema.decay = 1.0 must be in 0 .. 1"),
        ("model.embed_dim=0", "model.embed_dim = 0 must be at least 1"),
        ("model.logit_scale.init=200", "model.logit_scale.init = 200 must be positive and at most"),
        ("model.vision.width=33", "model.vision.width = 33 must be a multiple of vision.heads"),
        ("model.vision.image_width=17", "model.vision.image_width = 17 must be a multiple of"),
        ("model.vision.image_height=8000", "model.vision.image_height = 8000 must be at most"),
        ("model.text.vocab_size=49409", "model.text.vocab_size = 49409 must be from 514"),
        ("model.text.vocab_size=513", "model.text.vocab_size = 513 must be from 514"),
        ("model.text.context_length=2", "model.text.context_length = 2 must be from 3 to 1024"),
        ("model.text.context_length=1025", "model.text.context_length = 1025 must be from 3"),
    ] {
        let mut command = train_command(&folder.path().join("runs/fp32.s0"), &[setting]);
        refused_in(folder.path(), &mut command, USAGE, expected);
    }
}

#[test]
fn bad_config_files() {
    let (folder, configs) = (folder(), folder());
    for (name, content, expected) in [
        ("syntax.toml", &b"seed = 1\n\n[optim]\nlr = = 1\n"[..], "syntax.toml line 4: "),
        ("twice.toml", b"seed = 1\nseed = 2\n", "twice.toml line 2: duplicate key"),
        ("unknown.toml", b"[optim]\nrate = 1\n", "unknown.toml: unknown key `optim.rate`"),
        (
            "type.toml",
            b"[optim]\nlr = 'fast'\n",
            "type.toml: `optim.lr` takes a value of type float, and",
        ),
        (
            "range.toml",
            b"data.root = 'd'\noptim.lr = 0\n",
            "range.toml: optim.lr = 0.0 must be positive",
        ),
        ("section.toml", b"optim = 1\n", "section.toml: `optim` is a section"),
        ("bytes.toml", b"\xff\xfe", "cannot read"),
    ] {
        let path = configs.path().join(name);
        fs::write(&path, content).unwrap();
        let mut command = tbps();
        command.args(["train", "--config"]).arg(&path);
        command.arg("--out").arg(folder.path().join("run"));
        refused_in(folder.path(), &mut command, USAGE, expected);
    }
    for (path, expected) in [("absent.toml", "absent.toml: No such file"), ("", "Is a directory")] {
        let mut command = tbps();
        command.args(["train", "--config"]).arg(configs.path().join(path));
        command.arg("--out").arg(folder.path().join("run"));
        refused_in(folder.path(), &mut command, USAGE, expected);
    }
}
