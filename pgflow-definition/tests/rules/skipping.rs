//! The steps that may be skipped, against a model that plays every possible course of a run.

use pgflow_definition::skip::{SkipRule, may_be_skipped};
use pgflow_definition::{Condition, SkipMode, StepDefinition};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{ordered_graph, skip_mode, step};

const ALWAYS: SkipRule = SkipRule {
    conditional: false,
    when_unmet: SkipMode::Skip,
    when_exhausted: SkipMode::Fail,
};
const CASCADES: SkipRule = SkipRule {
    when_exhausted: SkipMode::SkipCascade,
    ..ALWAYS
};

#[test]
fn an_unmet_condition_counts_only_where_there_is_one() {
    let without = step("notify", &[]);
    assert!(!without.skip_rule().skips());
    for (required, forbidden) in [(Some("{}"), None), (None, Some("{}"))] {
        let condition = Condition {
            required,
            forbidden,
        };
        let with = StepDefinition {
            condition,
            ..without
        };
        assert!(with.skip_rule().leaves_dependents_without());
    }
}

#[test]
fn dependents_go_without_an_output_when_any_mode_says_skip() {
    let rule = |when_unmet, when_exhausted| SkipRule {
        conditional: true,
        when_unmet,
        when_exhausted,
    };
    let (fail, skip, cascade) = (SkipMode::Fail, SkipMode::Skip, SkipMode::SkipCascade);
    assert!(rule(skip, cascade).leaves_dependents_without());
    assert!(rule(cascade, skip).leaves_dependents_without());
    assert!(!rule(cascade, fail).leaves_dependents_without());
    assert!(!rule(fail, fail).skips());
}

#[test]
fn a_cascade_reaches_every_descendant_and_nobody_else() {
    let dependencies = [vec![], vec![0], vec![1], vec![], vec![2, 3]];
    let rules = [ALWAYS, CASCADES, ALWAYS, ALWAYS, ALWAYS];
    assert_eq!(
        may_be_skipped(&dependencies, &rules),
        [false, true, true, false, true]
    );
}

#[test]
fn a_cyclic_graph_is_no_trap() {
    assert_eq!(
        may_be_skipped(&[vec![1], vec![0]], &[CASCADES, ALWAYS]),
        [true, true]
    );
}

/// Returns the possible fates of a step that starts, other than failing the run.
fn fates(rule: SkipRule) -> Vec<Option<SkipMode>> {
    let unmet = rule.conditional.then_some(rule.when_unmet);
    let modes = unmet.into_iter().chain([rule.when_exhausted]);
    std::iter::once(None)
        .chain(modes.filter(|&mode| mode != SkipMode::Fail).map(Some))
        .collect()
}

/// Every way in which a run that does not fail can end: which steps are skipped.
fn endings(dependencies: &[Vec<usize>], rules: &[SkipRule]) -> Vec<Vec<bool>> {
    // (skipped, takes its dependents along)
    let mut runs: Vec<Vec<(bool, bool)>> = vec![vec![]];
    for (depends_on, &rule) in dependencies.iter().zip(rules) {
        let mut longer = Vec::new();
        for run in runs {
            let swept = depends_on.iter().any(|&dependency| run[dependency].1);
            let ends = if swept {
                vec![(true, true)]
            } else {
                fates(rule)
                    .iter()
                    .map(|fate| (fate.is_some(), *fate == Some(SkipMode::SkipCascade)))
                    .collect()
            };
            longer.extend(
                ends.into_iter()
                    .map(|end| [run.as_slice(), &[end]].concat()),
            );
        }
        runs = longer;
    }
    runs.into_iter()
        .map(|run| run.into_iter().map(|(skipped, _)| skipped).collect())
        .collect()
}

fn rules_for(steps: usize) -> impl Strategy<Value = Vec<SkipRule>> {
    let rule = (any::<bool>(), skip_mode(), skip_mode());
    let rule = rule.prop_map(|(conditional, when_unmet, when_exhausted)| SkipRule {
        conditional,
        when_unmet,
        when_exhausted,
    });
    vec(rule, steps)
}

proptest! {
    #[test]
    fn the_rules_say_what_can_happen(
        (dependencies, rules) in ordered_graph(5).prop_flat_map(|graph| {
            let rules = rules_for(graph.len());
            (Just(graph), rules)
        }),
    ) {
        let endings = endings(&dependencies, &rules);
        let can_end_skipped = |step: usize| endings.iter().any(|end| end[step]);
        let skipped: Vec<bool> = (0..rules.len()).map(can_end_skipped).collect();
        prop_assert_eq!(may_be_skipped(&dependencies, &rules), skipped);

        for (step, depends_on) in dependencies.iter().enumerate() {
            for &dependency in depends_on {
                let runs_without = endings.iter().any(|end| end[dependency] && !end[step]);
                prop_assert_eq!(rules[dependency].leaves_dependents_without(), runs_without);
            }
        }
    }
}
