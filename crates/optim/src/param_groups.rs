//! Which parameter gets which weight decay, learning rate factor and upper bound.
//!
//! Groups are tried in order and the first that matches takes the parameter, so exceptions come
//! first and [`Rule::All`] last.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Tensor};

use crate::error::{OptimError, require};

/// One reason for which a parameter belongs to a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// These whole path segments stand somewhere in the parameter's path, in a row: `bias`,
    /// `logit_scale` or `visual.blocks`. A pattern that matches nothing is an error.
    Path(String),
    /// The tensor has at most this rank: 1 takes biases, norms and scalars.
    MaxRank(usize),
    /// Every parameter.
    All,
}

impl Rule {
    fn matches(&self, path: &str, rank: usize) -> bool {
        match self {
            Self::Path(pattern) => has_segments(path, pattern),
            Self::MaxRank(max) => rank <= *max,
            Self::All => true,
        }
    }
}

/// Whether `pattern`'s dot-separated segments stand in `path` in a row.
fn has_segments(path: &str, pattern: &str) -> bool {
    format!(".{path}.").contains(&format!(".{pattern}."))
}

/// Settings shared by some parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamGroup {
    /// Shown in errors and listings.
    pub name: String,
    /// A parameter belongs here when any of them matches.
    pub rules: Vec<Rule>,
    /// Decoupled weight decay; 0 for none.
    pub weight_decay: f64,
    /// Factor on the schedule's learning rate.
    pub lr_scale: f64,
    /// Bound above each element after every update, as CLIP keeps `logit_scale` below ln 100.
    pub clamp_max: Option<f64>,
}

impl ParamGroup {
    /// A group with the schedule's own learning rate and no bound.
    pub fn new(name: &str, rules: Vec<Rule>, weight_decay: f64) -> Self {
        Self { name: name.to_owned(), rules, weight_decay, lr_scale: 1.0, clamp_max: None }
    }

    /// The usual split for CLIP-like models: no decay for tensors of rank 1 and below (biases,
    /// norms, scalars) and for `no_decay` patterns (embeddings), `weight_decay` for the rest.
    pub fn without_decay_for(no_decay: &[&str], weight_decay: f64) -> Vec<Self> {
        let patterns = no_decay.iter().map(|&pattern| Rule::Path(pattern.to_owned()));
        let rules = std::iter::once(Rule::MaxRank(1)).chain(patterns).collect();
        vec![Self::new("no_decay", rules, 0.0), Self::new("decay", vec![Rule::All], weight_decay)]
    }

    /// Errs when a number is out of range.
    pub fn validate(&self) -> Result<(), OptimError> {
        let Self { weight_decay, lr_scale, clamp_max, .. } = *self;
        let decay_ok = weight_decay >= 0.0 && weight_decay.is_finite();
        require(decay_ok, "group.weight_decay", weight_decay, "finite and not negative")?;
        let scale_ok = lr_scale > 0.0 && lr_scale.is_finite();
        require(scale_ok, "group.lr_scale", lr_scale, "positive and finite; freeze to stop")?;
        let max = clamp_max.unwrap_or(0.0);
        require(max.is_finite(), "group.clamp_max", max, "finite")
    }
}

/// One float parameter, as [`assign`] found it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamEntry {
    /// Field names and indices from the module's root, joined by dots.
    pub path: String,
    /// Identity of the parameter, unchanged by updates.
    pub id: ParamId,
    /// Index of its group.
    pub group: usize,
    /// Shape of the tensor.
    pub shape: Vec<usize>,
    /// Product of `shape`.
    pub num_elements: usize,
    /// Whether it requires gradients.
    pub trainable: bool,
}

/// Lists `model`'s float parameters in visit order, each with its group.
///
/// Frozen parameters count for the patterns, but no optimizer touches them.
///
/// # Errors
///
/// A group out of range, a [`Rule::Path`] without effect, a parameter that no group takes, that
/// stands at two paths, or that isn't f32; a model without any trainable parameter.
pub fn assign<M: Module>(model: &M, groups: &[ParamGroup]) -> Result<Vec<ParamEntry>, OptimError> {
    groups.iter().try_for_each(ParamGroup::validate)?;
    let mut lister = Lister { path: Vec::new(), found: Vec::new() };
    model.visit(&mut lister);

    let mut used: Vec<Vec<bool>> = groups.iter().map(|g| vec![false; g.rules.len()]).collect();
    let mut first_path = BTreeMap::new();
    let mut entries = Vec::with_capacity(lister.found.len());
    for (mut entry, dtype) in lister.found {
        if dtype != DType::F32 {
            return Err(OptimError::NotF32 { what: "the parameter", path: entry.path, dtype });
        }
        if let Some(first) = first_path.insert(entry.id, entry.path.clone()) {
            return Err(OptimError::SharedParameter { path: entry.path, first });
        }
        entry.group = choose_group(&entry, groups, &mut used)
            .ok_or_else(|| OptimError::NoGroup { path: entry.path.clone() })?;
        entries.push(entry);
    }
    refuse_unused_patterns(groups, &used)?;
    if !entries.iter().any(|entry| entry.trainable) {
        return Err(OptimError::NothingTrainable);
    }
    Ok(entries)
}

/// Index of the first group with a matching rule; all of that group's matching rules are `used`.
fn choose_group(
    entry: &ParamEntry,
    groups: &[ParamGroup],
    used: &mut [Vec<bool>],
) -> Option<usize> {
    let rank = entry.shape.len();
    (0..groups.len()).find(|&group| {
        let mut taken = false;
        for (rule, used) in groups[group].rules.iter().zip(&mut used[group]) {
            let matches = rule.matches(&entry.path, rank);
            *used |= matches;
            taken |= matches;
        }
        taken
    })
}

fn refuse_unused_patterns(groups: &[ParamGroup], used: &[Vec<bool>]) -> Result<(), OptimError> {
    for (group, used) in groups.iter().zip(used) {
        for (rule, used) in group.rules.iter().zip(used) {
            if let (Rule::Path(pattern), false) = (rule, used) {
                let (group, pattern) = (group.name.clone(), pattern.clone());
                return Err(OptimError::UnmatchedPattern { group, pattern });
            }
        }
    }
    Ok(())
}

/// Walks a module and notes every float parameter under its path.
struct Lister {
    path: Vec<String>,
    found: Vec<(ParamEntry, DType)>,
}

impl ModuleVisitor for Lister {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.dims().to_vec();
        let entry = ParamEntry {
            path: self.path.join("."),
            id: param.id,
            group: 0, // set by `assign`
            num_elements: shape.iter().product(),
            shape,
            trainable: param.is_require_grad(),
        };
        self.found.push((entry, param.dtype()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
    use burn::tensor::Device;

    #[derive(Module, Debug)]
    struct Net {
        token_embedding: Embedding,
        blocks: Vec<Linear>,
        logit_scale: Param<Tensor<1>>,
    }

    fn net() -> Net {
        let device = Device::flex().autodiff();
        Net {
            token_embedding: EmbeddingConfig::new(5, 2).init(&device),
            blocks: vec![LinearConfig::new(2, 3).init(&device)],
            logit_scale: Param::from_tensor(Tensor::zeros([1], &device)),
        }
    }

    #[test]
    fn ranks_and_patterns_choose_the_group_in_order() {
        let groups = ParamGroup::without_decay_for(&["token_embedding", "logit_scale"], 0.1);
        let entries = assign(&net(), &groups).unwrap();
        let found: Vec<_> = entries
            .iter()
            .map(|e| (e.path.as_str(), groups[e.group].name.as_str(), e.num_elements))
            .collect();
        let expected = [
            ("token_embedding.weight", "no_decay", 10),
            ("blocks.0.weight", "decay", 6),
            ("blocks.0.bias", "no_decay", 3),
            ("logit_scale", "no_decay", 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(entries[1].shape, [2, 3]);
        assert!(entries.iter().all(|e| e.trainable));
    }

    #[test]
    fn patterns_are_whole_segments_in_a_row() {
        for (path, pattern, expected) in [
            ("visual.blocks.0.bias", "visual.blocks", true),
            ("visual.blocks.0.bias", "0.bias", true),
            ("visual.blocks.0.bias", "visual.0", false),
            ("visual.blocks.0.in_bias", "bias", false),
        ] {
            assert_eq!(has_segments(path, pattern), expected, "{pattern} in {path}");
        }
    }

    #[test]
    fn a_pattern_without_effect_is_an_error() {
        let typo = ParamGroup::without_decay_for(&["token_embeding"], 0.1);
        let error = assign(&net(), &typo).unwrap_err();
        let (group, pattern) = ("no_decay".into(), "token_embeding".into());
        assert_eq!(error, OptimError::UnmatchedPattern { group, pattern });

        let mut shadowed = ParamGroup::without_decay_for(&[], 0.1);
        let bias = Rule::Path("bias".into()); // rank 1: the first group has it already
        shadowed.insert(1, ParamGroup::new("biases", vec![bias], 0.0));
        assert!(matches!(
            assign(&net(), &shadowed),
            Err(OptimError::UnmatchedPattern { group, .. }) if group == "biases"
        ));
    }

    #[test]
    fn every_parameter_needs_a_group_and_its_own_identity() {
        let none = [ParamGroup::new("vectors", vec![Rule::MaxRank(1)], 0.0)];
        let path = "token_embedding.weight".to_owned();
        assert_eq!(assign(&net(), &none), Err(OptimError::NoGroup { path }));

        let mut tied = net();
        tied.blocks.push(tied.blocks[0].clone());
        let groups = ParamGroup::without_decay_for(&[], 0.1);
        let (path, first) = ("blocks.1.weight".into(), "blocks.0.weight".into());
        assert_eq!(assign(&tied, &groups), Err(OptimError::SharedParameter { path, first }));
    }

    #[test]
    fn a_model_that_cannot_train_is_refused() {
        let groups = ParamGroup::without_decay_for(&[], 0.1);
        assert_eq!(assign(&net().valid(), &groups), Err(OptimError::NothingTrainable));
        let half = net().map(&mut Half);
        assert!(matches!(assign(&half, &groups), Err(OptimError::NotF32 { .. })));
    }

    struct Half;
    impl burn::module::ModuleMapper for Half {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            Param::from_tensor(param.val().inner().cast(DType::F16))
        }
    }
}
