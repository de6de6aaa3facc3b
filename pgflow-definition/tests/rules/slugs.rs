//! The valid slugs, and the messages about the others.

use pgflow_definition::Part;
use pgflow_definition::slug::{SlugProblem, check_slug};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{VECTORS, flow, only_problem, outline, step};

const _: () = assert!(check_slug("crate_audit").is_ok());

#[test]
fn all_vectors_are_judged_as_they_say() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for vector in vectors["slugs"].as_array().unwrap() {
        let slug = vector["slug"].as_str().unwrap();
        assert_eq!(
            check_slug(slug).is_ok(),
            vector["valid"].as_bool().unwrap(),
            "{slug:?}"
        );
    }
}

#[test]
fn each_fault_has_its_own_reason() {
    let cases = [
        ("", SlugProblem::Empty),
        ("a-b", SlugProblem::BadCharacter { at: 1 }),
        ("caf\u{e9}", SlugProblem::BadCharacter { at: 3 }),
        ("1st", SlugProblem::LeadingDigit),
        ("_a", SlugProblem::LeadingUnderscore),
        ("__", SlugProblem::LeadingUnderscore),
        ("a__b", SlugProblem::DoubleUnderscore),
        ("a__", SlugProblem::DoubleUnderscore),
        ("a_", SlugProblem::TrailingUnderscore),
        ("run", SlugProblem::Reserved),
    ];
    for (slug, problem) in cases {
        assert_eq!(check_slug(slug), Err(problem), "{slug:?}");
    }
}

#[test]
fn length_counts_characters_and_not_bytes() {
    assert_eq!(check_slug(&"a".repeat(128)), Ok(()));
    assert_eq!(
        check_slug(&"a".repeat(129)),
        Err(SlugProblem::TooLong { len: 129 })
    );
    // 200 bytes, but what is wrong are its 100 characters.
    assert_eq!(
        check_slug(&"\u{e9}".repeat(100)),
        Err(SlugProblem::BadCharacter { at: 0 })
    );
}

#[test]
fn the_text_says_what_is_wrong_what_was_expected_and_what_to_do() {
    let texts = [
        (
            "parse__all",
            "the slug of step `parse__all` contains `__`, which separates the flow from the step \
             in queue names; a slug has single `_` only; set another with `slug = \"..\"`",
        ),
        (
            "a\nb",
            "the slug of step `a\\nb` contains `\\n`; a slug has only ASCII letters, digits and \
             `_`; set another with `slug = \"..\"`",
        ),
        (
            "run",
            "the slug of step `run` is reserved; any other word will do, such as `runs` or \
             `execute`; set another with `slug = \"..\"`",
        ),
    ];
    for (slug, text) in texts {
        let steps = [step(slug, &[])];
        assert_eq!(only_problem(&flow("audit", &steps)).to_string(), text);
    }
}

#[test]
fn a_long_slug_is_cut_in_the_text() {
    let slug = "\u{e9}".repeat(1000);
    let text = only_problem(&flow(&slug, &[step("a", &[])])).to_string();
    let start = format!("the slug of flow `{}..` contains", "\u{e9}".repeat(128));
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn names_of_parameters_are_not_steps() {
    let steps = ["input", "item", "ctx", "state", "inputs"].map(|slug| step(slug, &[]));
    let expected = [0, 1, 2, 3].map(|index| (Some(index), Part::Slug, "binding_name"));
    assert_eq!(outline(&flow("audit", &steps)), expected);
    assert_eq!(
        only_problem(&flow("audit", &steps[2..3])).to_string(),
        "step `ctx` can't have this name; `input`, `item`, `ctx` and `state` are reserved for \
         parameters of steps; rename the step"
    );
}

/// The rule as a sentence, without regard to which fault comes first.
fn is_valid(slug: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    slug.chars()
        .all(|c| letter(Some(c)) || digit(Some(c)) || c == '_')
        && letter(slug.chars().next())
        && (letter(slug.chars().last()) || digit(slug.chars().last()))
        && !slug.contains("__")
        && slug.len() <= 128
        && slug != "run"
}

proptest! {
    #[test]
    fn any_text_is_judged_by_the_rule(
        slug in prop_oneof!["[a_]{0,4}", "[a-zA-Z0-9_]{0,140}", "[runRUN]{3}", any::<String>()],
    ) {
        let checked = check_slug(&slug);
        prop_assert_eq!(checked.is_ok(), is_valid(&slug), "{:?}", checked);
        if let Err(problem) = checked {
            prop_assert!(!problem.describe(&slug).is_empty());
        }
    }

    #[test]
    fn a_problem_can_be_told_of_another_slug(slug: String, at in 0..20_usize) {
        let text = SlugProblem::BadCharacter { at }.describe(&slug);
        prop_assert!(text.starts_with("contains `"));
    }
}
