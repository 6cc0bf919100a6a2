//! The one error type of this crate.

use burn::tensor::DType;
use thiserror::Error;

/// What can be wrong with the settings, the model, the gradients or a saved state.
#[derive(Debug, Error, PartialEq)]
pub enum OptimError {
    /// A number outside the range in which it has a meaning.
    #[error("{setting} = {value}: it must be {requirement}")]
    InvalidSetting {
        /// Name of the field, as `struct.field`.
        setting: &'static str,
        /// The refused value.
        value: f64,
        /// The range that would be accepted.
        requirement: &'static str,
    },
    /// A path pattern that no parameter has, so that its group's settings would do nothing.
    #[error(
        "group `{group}`: pattern `{pattern}` matches no parameter that an earlier group left; \
         fix or remove it"
    )]
    UnmatchedPattern {
        /// Name of the group that holds the pattern.
        group: String,
        /// The pattern.
        pattern: String,
    },
    /// A parameter that no group takes.
    #[error("parameter `{path}` belongs to no group; end the groups with one that takes all")]
    NoGroup {
        /// Path of the parameter.
        path: String,
    },
    /// No parameter requires gradients.
    #[error(
        "the model has no trainable parameter; build it on an autodiff device or call `train()`"
    )]
    NothingTrainable,
    /// One parameter that appears at two paths of the module.
    #[error("`{path}` is the same parameter as `{first}`; shared parameters are not supported")]
    SharedParameter {
        /// Path of the second occurrence.
        path: String,
        /// Path of the first occurrence.
        first: String,
    },
    /// A parameter or gradient that isn't f32: the optimizer works on f32 master weights only.
    #[error("{what} of `{path}` is {dtype:?}; keep master weights and their gradients in f32")]
    NotF32 {
        /// "the parameter" or "the gradient".
        what: &'static str,
        /// Path of the parameter.
        path: String,
        /// The type found.
        dtype: DType,
    },
    /// A trainable parameter without a gradient.
    #[error(
        "trainable parameter `{path}` got no gradient; use it in the loss, or freeze it with \
         `set_require_grad(false)` before the optimizer is made"
    )]
    MissingGradient {
        /// Path of the parameter.
        path: String,
    },
    /// Gradients that belong to no trainable parameter of the model.
    #[error("{count} of the gradients belong to no trainable parameter of this model")]
    UnusedGradients {
        /// How many.
        count: usize,
    },
    /// The model isn't the one the optimizer was made for.
    #[error("the trainable parameters changed at `{path}`; make a new optimizer for this model")]
    ModelChanged {
        /// The first trainable parameter, in visit order, that is not where it was.
        path: String,
    },
    /// A saved state without a tensor that this optimizer needs.
    #[error(
        "the saved state has no tensor `{name}`; it belongs to another model or other settings"
    )]
    MissingTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A saved state with a tensor that nothing here reads.
    #[error("the saved state's tensor `{name}` has no use here; it belongs to other settings")]
    UnexpectedTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A saved tensor of another shape or type.
    #[error("saved tensor `{name}` is {found_dtype:?} {found:?}, but F32 {expected:?} is needed")]
    WrongTensor {
        /// Name of the tensor.
        name: String,
        /// Shape of the parameter.
        expected: Vec<usize>,
        /// Shape in the saved state.
        found: Vec<usize>,
        /// Type in the saved state.
        found_dtype: DType,
    },
    /// A saved state in which a whole part is there that the settings lack, or the reverse.
    #[error(
        "the saved state and the settings disagree on having {part}; resume with the same settings"
    )]
    StateMismatch {
        /// "loss scaling" or "weight averaging".
        part: &'static str,
    },
}

/// Errs unless `holds`; the range is spelled out in `requirement`.
pub(crate) fn require(
    holds: bool,
    setting: &'static str,
    value: f64,
    requirement: &'static str,
) -> Result<(), OptimError> {
    if holds { Ok(()) } else { Err(OptimError::InvalidSetting { setting, value, requirement }) }
}
