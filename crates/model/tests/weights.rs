//! Weights files of every kind that people have, read by content; and what is refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[path = "fixtures/clip_sources/mod.rs"]
mod clip_sources;

use burn::tensor::{Device, TensorData};
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use tbps_model::ModelError;
use tbps_model::config::{Activation, ClipConfig, LogitScaleConfig, TextConfig, VisionConfig};
use tbps_model::pos_embed::PosEmbedResize;
use tbps_model::weights::{self, Container, Names, Recipe};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const FILES: [(&str, Container, Names, &[&str]); 6] = [
    ("open_clip_model.safetensors", Container::Safetensors, Names::OpenClip, &["float32"]),
    ("open_clip.pt", Container::TorchZip, Names::OpenClip, &["float32"]),
    ("open_clip_checkpoint.pt", Container::TorchZip, Names::OpenClip, &["float32"]),
    ("hugging_face_model.safetensors", Container::Safetensors, Names::HuggingFace, &["float32"]),
    ("hugging_face_pytorch_model.bin", Container::TorchZip, Names::HuggingFace, &["float32"]),
    ("openai.pt", Container::TorchScript, Names::OpenClip, &["float16", "float32"]),
];

/// The fixtures' model.
fn config() -> ClipConfig {
    ClipConfig {
        embed_dim: 32,
        activation: Activation::QuickGelu,
        logit_scale: LogitScaleConfig { init: 100.0, learnable: true, max: 100.0 },
        vision: VisionConfig {
            image_height: 32,
            image_width: 32,
            patch_size: 16,
            width: 64,
            layers: 2,
            heads: 1,
        },
        text: TextConfig { vocab_size: 514, context_length: 16, width: 64, layers: 2, heads: 1 },
    }
}

fn recipe() -> Recipe {
    Recipe { model: config(), pixel_mean: [0.5; 3], pixel_std: [0.25; 3] }
}

fn tensors(name: &str) -> BTreeMap<String, TensorData> {
    weights::read(&clip_sources::read(name)).unwrap().tensors
}

#[test]
fn every_format_holds_the_same_model() {
    let expected = tensors("open_clip_model.safetensors");
    for (file, container, names, dtypes) in FILES {
        let read = weights::read(&clip_sources::read(file)).unwrap();
        assert_eq!((read.container, read.names), (container, names), "{file}");
        assert!(read.dtypes.iter().eq(dtypes), "{file}: {:?}", read.dtypes);
        assert_eq!(read.config().unwrap(), config(), "{file}");
        assert!(read.tensors == expected, "{file} holds other numbers");
        let model = config().init(0, &Device::flex()).unwrap();
        let fitted = read.fit(&config(), PosEmbedResize::Bilinear).unwrap();
        assert_eq!(fitted.resized_from, None);
        let model = weights::load(model, fitted.tensors).unwrap();
        assert_eq!(weights::state_dict(&model).into_iter().collect::<BTreeMap<_, _>>(), expected);
    }
}

#[test]
fn an_export_is_open_clips_file_again() {
    let original = clip_sources::read("open_clip_model.safetensors");
    for (file, ..) in FILES {
        let exported = weights::export(&tensors(file), &recipe()).unwrap();
        let (ours, theirs) =
            (SafeTensors::deserialize(&exported), SafeTensors::deserialize(&original));
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(sorted(ours.names()), sorted(theirs.names()), "{file}");
        for (name, tensor) in theirs.tensors() {
            assert_eq!(ours.tensor(&name).unwrap(), tensor, "{file}: {name}");
        }
        let again = weights::read(&exported).unwrap();
        assert_eq!(again.recipe, Some(recipe()));
        assert!(again.tensors == tensors(file));
    }
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

#[test]
fn our_own_file_keeps_names_and_recipe() {
    let tensors = tensors("openai.pt");
    let read = weights::read(&weights::serialize(&tensors, &recipe()).unwrap()).unwrap();
    assert_eq!((read.names, read.recipe.clone()), (Names::Ours, Some(recipe())));
    assert!(read.tensors == tensors);
}

/// The oracle's position embedding at 48x32 is open_clip's resize of the file's.
#[test]
fn another_image_size_resizes_positions_only() {
    const TOLERANCE: f32 = 1e-6; // f64 here, f32 there
    let mut tall = config();
    tall.vision.image_height = 48;
    tall.logit_scale = LogitScaleConfig { init: 50.0, learnable: false, max: 100.0 };
    let read = weights::read(&clip_sources::read("openai.pt")).unwrap();
    let fitted = read.fit(&tall, PosEmbedResize::BicubicAntialias).unwrap();
    assert_eq!(fitted.resized_from, Some([2, 2]));
    let oracle = clip_sources::read("oracle_48x32.safetensors");
    let oracle = SafeTensors::deserialize(&oracle).unwrap();
    let expected = oracle.tensor("visual.positional_embedding").unwrap();
    let found = &fitted.tensors["visual.stem.pos_embed"];
    assert_eq!(found.shape().to_vec(), expected.shape());
    let expected = expected.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
    for (found, expected) in found.as_slice::<f32>().unwrap().iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE, "{found} {expected}");
    }
    let mut others = tensors("openai.pt");
    others.remove("visual.stem.pos_embed");
    others.insert("log_logit_scale".into(), TensorData::from([50f64.ln() as f32]));
    assert!(others.iter().all(|(name, data)| &fitted.tensors[name] == data));
}

#[test]
fn what_is_no_weights_file_is_told() {
    let archive = archive(&[("x/notes.txt", b"hello")]);
    for (bytes, expected) in [
        (&b""[..], "the file is empty: download it again"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:58\nsize 598641023\n",
            "this is a Git LFS pointer and not the weights: run `git lfs pull` where it came from",
        ),
        (
            b"\n<!DOCTYPE html><html><head><title>Sign in</title>",
            "this is an HTML page and not the weights: open it to see what the server said, then \
             download the file itself",
        ),
        (
            b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.",
            "this is a pickle without torch's archive around it (torch before 1.6 wrote such): \
             save it again with a newer torch, or take the .safetensors",
        ),
        (
            b"GIF89a",
            "this is no weights file: expected safetensors, or an archive of torch.save or \
             torch.jit.save",
        ),
        (
            &archive,
            "this zip archive holds no data.pkl, so torch did not write it: give the weights file",
        ),
    ] {
        assert_eq!(weights::read(bytes).unwrap_err().to_string(), expected);
    }
}

#[test]
fn another_models_tensors_are_named() {
    let original = clip_sources::read("open_clip_model.safetensors");
    let file = SafeTensors::deserialize(&original).unwrap();
    let without = |patch: &dyn Fn(&str) -> Option<String>| {
        let kept =
            file.tensors().into_iter().filter_map(|(name, view)| Some((patch(&name)?, view)));
        weights::read(&safetensors::serialize(kept, None).unwrap())
    };
    let resnet = without(&|name| Some(name.replace("visual.conv1", "visual.layer1.conv1")));
    assert_eq!(
        resnet.unwrap_err().to_string(),
        "these are no weights of a ViT CLIP: its tensors are [ln_final.bias, ln_final.weight, \
         logit_scale, .. (62 in all)]"
    );
    let extra = without(&|name| Some(name.replace("visual.ln_pre", "visual.ln_begin")));
    assert_eq!(
        extra.unwrap_err().to_string(),
        "these weights are of another model: it has no [visual.ln_begin.bias, \
         visual.ln_begin.weight]"
    );
    let short = without(&|name| (name != "text_projection").then(|| name.to_owned())).unwrap();
    let mut wide = config();
    wide.embed_dim = 48;
    let fitted = short.fit(&wide, PosEmbedResize::Bilinear).unwrap();
    let model = wide.init(0, &Device::flex()).unwrap();
    assert_eq!(
        weights::load(model, fitted.tensors).unwrap_err().to_string(),
        "these weights are of another model: missing [text.head.proj], unexpected [], wrong shape \
         [visual.head.proj is [64, 32], not [64, 48]]"
    );
}

#[test]
fn weights_that_are_not_numbers_are_refused() {
    let mut broken = tensors("open_clip.pt");
    broken.insert("text.head.ln_final.beta".into(), TensorData::new(vec![f32::NAN; 64], [64]));
    assert_eq!(
        weights::read(&weights::export(&broken, &recipe()).unwrap()).unwrap_err().to_string(),
        "text.head.ln_final.beta holds NaN or infinity: the weights diverged, or the file is damaged"
    );
}

/// Sizes that would end in a division by zero, or in a model larger than any memory.
#[test]
fn a_file_that_lies_about_its_model_is_refused() {
    let tensors = tensors("open_clip.pt");
    let lies: [fn(&mut ClipConfig); 4] = [
        |model| model.vision.patch_size = 0,
        |model| model.vision.layers = 1 << 50,
        |model| model.text.width = 128,
        |model| model.vision.image_height = 64,
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut recipe = recipe();
        lie(&mut recipe.model);
        let file = weights::serialize(&tensors, &recipe).unwrap();
        let error = weights::read(&file).unwrap().config().unwrap_err().to_string();
        let expected = match number {
            0 => "model.vision.patch_size = 0 must be at least 1",
            _ => {
                "the file is damaged or no weights file: its metadata `tbps` is of another model \
                 than its tensors"
            }
        };
        assert_eq!(error, expected);
    }
    let mut bare = weights::read(&clip_sources::read("open_clip.pt")).unwrap();
    let patches = TensorData::new(vec![0f32; 64], [1, 64]);
    bare.tensors.insert("visual.stem.patch_embed".into(), patches);
    let error = bare.fit(&config(), PosEmbedResize::Bilinear).unwrap_err().to_string();
    assert_eq!(error, "model.vision.image_height = 0 must be at least 1");
}

/// A zip archive of uncompressed files, as torch writes it.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Python's `torch.load(weights_only=False)` of this file creates the marker.
#[test]
fn a_hostile_pickle_runs_nothing() {
    let marker = std::env::temp_dir().join(format!("tbps-hostile-{}", std::process::id()));
    let command = format!("touch {}", marker.display());
    let mut program = b"\x80\x02cposix\nsystem\nX".to_vec();
    program.extend((command.len() as u32).to_le_bytes());
    program.extend(command.as_bytes());
    program.extend(b"\x85R.");
    for folder in ["archive", "evil"] {
        let data = format!("{folder}/data.pkl");
        let error = weights::read(&archive(&[(&data, &program)])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "its pickle asks for `posix.system`, which no weights need: nothing of it was run; \
             take weights that you trust, as .safetensors or a plain state dict"
        );
    }
    assert!(!marker.exists());
}

/// A download that stopped, at many places; and bytes that changed on the way.
#[test]
fn damage_is_an_error_and_never_a_panic() {
    for (file, ..) in FILES {
        let whole = clip_sources::read(file);
        for cut in [9, 100, 1_000, whole.len() / 2, whole.len() - 1] {
            let error = weights::read(&whole[..cut]).unwrap_err();
            assert_eq!(error, ModelError::Truncated, "{file} cut to {cut}: {error}");
        }
        let expected = weights::read(&whole).unwrap().tensors;
        let mut random = 1u64;
        for _ in 0..300 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Mostly in the headers: numbers that change are a matter for check sums.
            let reach = if random & 1 == 0 { 4_096 } else { whole.len() };
            let mut torn = whole.clone();
            torn[(random >> 33) as usize % reach] ^= 1 << ((random >> 8) & 7);
            if let Ok(read) = weights::read(&torn) {
                assert_eq!(read.tensors.len(), expected.len(), "{file}");
            }
        }
    }
}
