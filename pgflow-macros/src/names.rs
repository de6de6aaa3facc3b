//! Names: their case, how they are listed, and which one may have been meant.

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};

/// The slug of a type: `HTTPFetch` is `http_fetch`.
pub(crate) fn slug(type_name: &str) -> String {
    type_name.to_snake_case()
}

/// The variant for a step: `fetch_page` is `FetchPage`.
///
/// Some functions' names have no such form, for example `_1`; their slugs are refused anyway.
pub(crate) fn variant(step: &str, span: Span) -> Ident {
    let name = step.to_upper_camel_case();
    let is_name = syn::parse_str::<Ident>(&name).is_ok();
    let name = if is_name { name } else { format!("Step{name}") };
    Ident::new(&name, span)
}

/// `` `a`, `b` ``.
pub(crate) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The nearest candidate, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let (distance, candidate) = candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::osa_distance(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .min_by_key(|(distance, _)| *distance)?;
    let longest = word.chars().count().max(candidate.chars().count());
    (distance <= (longest / 3).max(1)).then_some(candidate)
}

/// Returns whether a word is another one with a single slip. Words of their own are none.
pub(crate) fn is_misspelt(word: &str, meant: &str) -> bool {
    const OTHER_WORDS: &[&str] = &["stop", "stem", "steep", "frog", "prom"];
    !OTHER_WORDS.contains(&word)
        && strsim::osa_distance(&word.to_lowercase(), meant) <= 1
        && word != meant
}

/// The question to ask when a name is unknown.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_functions_change_case() {
        for (name, expected) in [
            ("CrateAudit", "crate_audit"),
            ("HTTPFetch", "http_fetch"),
            ("CrateAuditV2", "crate_audit_v2"),
            ("A", "a"),
        ] {
            assert_eq!(slug(name), expected);
        }
        for (name, expected) in [
            ("fetch_all_1", "FetchAll1"),
            ("fetch1", "Fetch1"),
            ("type", "Type"),
            ("_1", "Step1"),
            ("_", "Step"),
            ("self_", "StepSelf"),
        ] {
            assert_eq!(variant(name, Span::call_site()), expected);
        }
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        assert_eq!(nearest("inspct", ["parse", "inspect"]), Some("inspect"));
        assert_eq!(nearest("prase", ["parse", "inspect"]), Some("parse"));
        assert_eq!(nearest("zzz", ["parse", "inspect"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
