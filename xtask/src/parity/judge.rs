//! What was measured, and the bars that it has to keep to.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Largest difference of an element of a feature of unit length.
const FEATURES: f64 = 2e-5;
/// Relative error of the loss.
const LOSS: f64 = 1e-5;
/// Error of a gradient, as a multiple of that of PyTorch's own f32 gradient.
const GRADIENT: f64 = 2.0;
/// What no gradient's error must be below, relative to the norm of all gradients.
const GRADIENT_FLOOR: f64 = 1e-6;
/// Parameters of ViT-B/16 by image height and width: the position embedding differs.
const PARAMETERS: [([usize; 2], u64); 2] = [([224, 224], 149_620_737), ([384, 128], 149_617_665)];

/// What `parity.py` writes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    model: String,
    seed: u64,
    batch: usize,
    cpu: String,
    versions: BTreeMap<String, String>,
    cases: Vec<Case>,
}

/// One implementation and image size. Errors are against that implementation in f64.
#[derive(Debug, Serialize, Deserialize)]
struct Case {
    source: String,
    image_size: [usize; 2],
    parameters: u64,
    pytorch_parameters: u64,
    features_error: f64,
    pytorch_features_error: f64,
    loss: f64,
    loss_error: f64,
    pytorch_loss_error: f64,
    grad_norm: f64,
    gradients: Vec<Gradient>,
    seconds: f64,
}

/// A parameter's gradient: norms of the errors, ours and that of PyTorch in f32.
#[derive(Debug, Serialize, Deserialize)]
struct Gradient {
    name: String,
    error: f64,
    pytorch_error: f64,
}

impl Measured {
    /// Every bar that was missed, in a clause each.
    pub(super) fn misses(&self) -> Vec<String> {
        match self.cases.is_empty() {
            true => vec!["nothing was measured".to_owned()],
            false => self.cases.iter().flat_map(Case::misses).collect(),
        }
    }

    /// The measurements and the verdict.
    pub(super) fn judged(&self) -> Value {
        json!({
            "bars": {
                "features": FEATURES,
                "loss": LOSS,
                "gradient_of_pytorchs": GRADIENT,
                "gradient_floor": GRADIENT_FLOOR,
            },
            "misses": self.misses(),
            "measured": self,
        })
    }

    /// A row per case, in Markdown.
    pub(super) fn table(&self) -> String {
        let mut table = "| implementation | image | parameters | features: ours, PyTorch f32 | loss: \
                         ours, PyTorch f32 | gradients: worst of its bound | |\n| --- | --- | ---: | \
                         --- | --- | --- | --- |"
            .to_owned();
        for case in &self.cases {
            let [height, width] = case.image_size;
            let worst = case.worst();
            let verdict = if case.misses().is_empty() { "pass" } else { "MISS" };
            let row = format!(
                "\n| {} | {height}x{width} | {} | {:.1e}, {:.1e} | {:.1e}, {:.1e} | {:.2}, {} | {} |",
                case.source,
                case.parameters,
                case.features_error,
                case.pytorch_features_error,
                case.loss_error,
                case.pytorch_loss_error,
                worst.map_or(f64::NAN, |gradient| gradient.error / case.bound(gradient)),
                worst.map_or("none", |gradient| &gradient.name),
                verdict,
            );
            table.push_str(&row);
        }
        table
    }
}

impl Case {
    fn bound(&self, gradient: &Gradient) -> f64 {
        (GRADIENT * gradient.pytorch_error).max(GRADIENT_FLOOR * self.grad_norm)
    }

    /// The gradient that is nearest to its bound, or furthest beyond.
    fn worst(&self) -> Option<&Gradient> {
        let of_bound = |gradient: &&Gradient| gradient.error / self.bound(gradient);
        self.gradients.iter().max_by(|a, b| of_bound(a).total_cmp(&of_bound(b)))
    }

    fn misses(&self) -> Vec<String> {
        let [height, width] = self.image_size;
        let mut misses = Vec::new();
        let mut require = |holds: bool, what: String| {
            if !holds {
                misses.push(format!("{} {height}x{width}: {what}", self.source));
            }
        };
        let known = PARAMETERS.iter().find(|(size, _)| *size == self.image_size);
        let expected = known.map_or(self.pytorch_parameters, |(_, count)| *count);
        let counts = [self.parameters, self.pytorch_parameters];
        require(counts == [expected; 2], format!("{counts:?} parameters, not {expected}"));
        // Written so that a NaN is a miss.
        let features = self.features_error;
        require(features <= FEATURES, format!("features off by {features:.1e}"));
        require(self.loss_error <= LOSS, format!("loss off by {:.1e}", self.loss_error));
        require(!self.gradients.is_empty(), "no gradients".to_owned());
        for gradient in &self.gradients {
            let (error, bound) = (gradient.error, self.bound(gradient));
            let mut what = format!("gradient of {}", gradient.name);
            _ = write!(what, " off by {error:.1e}, more than {bound:.1e}");
            require(error <= bound, what);
        }
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let gradient = |name: &str, error, pytorch_error| Gradient {
            name: name.to_owned(),
            error,
            pytorch_error,
        };
        Case {
            source: "open_clip".to_owned(),
            image_size: [384, 128],
            parameters: 149_617_665,
            pytorch_parameters: 149_617_665,
            features_error: 2e-5,
            pytorch_features_error: 1e-6,
            loss: 1.0,
            loss_error: 1e-5,
            pytorch_loss_error: 1e-7,
            grad_norm: 10.0,
            gradients: vec![gradient("a", 2e-4, 1e-4), gradient("b", 8e-6, 1e-9)],
            seconds: 1.0,
        }
    }

    fn measured(cases: Vec<Case>) -> Measured {
        let (model, cpu) = ("ViT".to_owned(), String::new());
        Measured { model, seed: 0, batch: 3, cpu, versions: BTreeMap::new(), cases }
    }

    #[test]
    fn what_keeps_to_the_bars_passes() {
        let measured = measured(vec![case()]);
        assert!(measured.misses().is_empty(), "{:?}", measured.misses());
        assert_eq!(
            measured.table().lines().last(),
            Some(
                "| open_clip | 384x128 | 149617665 | 2.0e-5, 1.0e-6 | 1.0e-5, 1.0e-7 | 1.00, a | \
                 pass |"
            )
        );
    }

    #[test]
    fn each_bar_can_be_missed() {
        type Spoil = fn(&mut Case);
        let bad: [(Spoil, &str); 7] = [
            (|c| c.parameters += 1, "[149617666, 149617665] parameters, not 149617665"),
            (|c| c.features_error = 3e-5, "features off by 3.0e-5"),
            (|c| c.features_error = f64::NAN, "features off by NaN"),
            (|c| c.loss_error = 2e-5, "loss off by 2.0e-5"),
            (|c| c.gradients.clear(), "no gradients"),
            (|c| c.gradients[0].error = 3e-4, "gradient of a off by 3.0e-4, more than 2.0e-4"),
            (|c| c.gradients[1].error = 2e-5, "gradient of b off by 2.0e-5, more than 1.0e-5"),
        ];
        for (spoil, expected) in bad {
            let mut case = case();
            spoil(&mut case);
            let measured = measured(vec![case]);
            assert_eq!(measured.misses(), [format!("open_clip 384x128: {expected}")]);
            assert!(measured.table().ends_with("MISS |"));
        }
        assert_eq!(measured(Vec::new()).misses(), ["nothing was measured"]);
    }
}
