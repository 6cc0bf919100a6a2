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
}

/// The first few names of a list that may be hundreds long, and how many there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 3;
    match names.len() {
        n if n > SHOWN => format!("{}, .. ({n} in all)", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}
