//! What can be wrong with a model's configuration or weights.

/// A configuration that describes no model, or weights that are not the model's.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A size is zero or out of range.
    #[error("model.{field} = {value} must be {expected}")]
    Size {
        /// Path of the setting.
        field: &'static str,
        /// What it was.
        value: f64,
        /// What it has to be.
        expected: &'static str,
    },
    /// One size must divide another.
    #[error("model.{field} = {value} must be a multiple of {divisor_field} = {divisor}")]
    NotMultiple {
        /// Path of the setting.
        field: &'static str,
        /// What it was.
        value: usize,
        /// Path of the setting that must divide it.
        divisor_field: &'static str,
        /// What that was.
        divisor: usize,
    },
    /// Weights that are not this model's.
    #[error(
        "these weights are of another model: missing [{}], unexpected [{}], wrong shape [{}]",
        some(missing),
        some(unexpected),
        some(misshapen)
    )]
    Weights {
        /// Parameters without a tensor.
        missing: Vec<String>,
        /// Tensors without a parameter.
        unexpected: Vec<String>,
        /// Parameters whose tensor has another shape, with both shapes.
        misshapen: Vec<String>,
    },
    /// A file of no bytes.
    #[error("the file is empty: download it again")]
    Empty,
    /// A pointer that Git LFS leaves in the place of a file.
    #[error("this is a Git LFS pointer and not the weights: run `git lfs pull` where it came from")]
    LfsPointer,
    /// A page that a server sent instead of the file.
    #[error(
        "this is an HTML page and not the weights: open it to see what the server said, then \
         download the file itself"
    )]
    Html,
    /// What `torch.save` wrote before torch 1.6, or a bare pickle.
    #[error(
        "this is a pickle without torch's archive around it (torch before 1.6 wrote such): save it \
         again with a newer torch, or take the .safetensors"
    )]
    LegacyPickle,
    /// Nothing that weights come in.
    #[error(
        "this is no weights file: expected safetensors, or an archive of torch.save or \
         torch.jit.save"
    )]
    UnknownFile,
    /// A zip archive that torch did not write.
    #[error("this zip archive holds no data.pkl, so torch did not write it: give the weights file")]
    NoPickle,
    /// A file that ends too early.
    #[error("the file is cut off (or has been appended to): download it again")]
    Truncated,
    /// A file that contradicts itself, or has what no weights have.
    #[error("the file is damaged or no weights file: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// A pickle that would call what no weights need.
    #[error(
        "its pickle asks for `{name}`, which no weights need: nothing of it was run; take weights \
         that you trust, as .safetensors or a plain state dict"
    )]
    UnsafePickle {
        /// What it asks for.
        name: String,
    },
    /// Tensors that are no CLIP's at all.
    #[error("these are no weights of a ViT CLIP: its tensors are [{}]", some(names))]
    NotClip {
        /// What the tensors are called.
        names: Vec<String>,
    },
    /// Tensors that no CLIP has, beside those that it has.
    #[error("these weights are of another model: it has no [{}]", some(names))]
    Unexpected {
        /// What the tensors are called.
        names: Vec<String>,
    },
    /// A parameter that is infinite or not a number.
    #[error("{name} holds NaN or infinity: the weights diverged, or the file is damaged")]
    NotFinite {
        /// The parameter.
        name: String,
    },
}

/// The first few names of a list that may be hundreds long, and how many there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 3;
    match names.len() {
        n if n > SHOWN => format!("{}, .. ({n} in all)", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}
