//! The steps that may be skipped, and the steps that then run without an output.

use crate::SkipMode;

/// The ways in which one step can be skipped by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipRule {
    /// `true` if the step has a condition; without one, `when_unmet` has no effect.
    pub conditional: bool,
    /// The effect of an unmet condition.
    pub when_unmet: SkipMode,
    /// The effect when a task has used up its attempts.
    pub when_exhausted: SkipMode,
}

impl SkipRule {
    /// Dependents may run without this step's output: they take it as an `Option`.
    pub const fn leaves_dependents_without(self) -> bool {
        self.uses(SkipMode::Skip)
    }

    /// Dependents may be skipped together with this step.
    pub const fn cascades(self) -> bool {
        self.uses(SkipMode::SkipCascade)
    }

    /// The step itself may end up skipped, whatever its ancestors do.
    pub const fn skips(self) -> bool {
        self.leaves_dependents_without() || self.cascades()
    }

    const fn uses(self, mode: SkipMode) -> bool {
        let mode = mode as u8;
        (self.conditional && self.when_unmet as u8 == mode) || self.when_exhausted as u8 == mode
    }
}

/// Checks whether each step may end up skipped, by itself or because an ancestor cascades. The
/// output of a leaf for which this holds is an `Option`.
///
/// `dependencies[i]` lists the indexes that step `i` depends on; the graph may have cycles.
///
/// # Panics
///
/// When an index in `dependencies` is out of range, or `rules` is shorter.
pub fn may_be_skipped(dependencies: &[Vec<usize>], rules: &[SkipRule]) -> Vec<bool> {
    let mut dependents = vec![Vec::new(); dependencies.len()];
    for (step, depends_on) in dependencies.iter().enumerate() {
        for &dependency in depends_on {
            dependents[dependency].push(step);
        }
    }

    let mut swept = vec![false; dependencies.len()];
    let mut cascading: Vec<usize> = (0..dependencies.len())
        .filter(|&step| rules[step].cascades())
        .collect();
    while let Some(step) = cascading.pop() {
        for &dependent in &dependents[step] {
            if !std::mem::replace(&mut swept[dependent], true) {
                cascading.push(dependent);
            }
        }
    }
    swept
        .iter()
        .zip(rules)
        .map(|(&swept, rule)| swept || rule.skips())
        .collect()
}
