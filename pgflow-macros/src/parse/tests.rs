use pgflow_definition::{RunsOn, SkipMode};
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse_quote;

use super::*;
use crate::{errors::Errors, model::types::show};

/// Returns the arguments that were read, and the mistakes.
fn flow(tokens: TokenStream) -> (FlowArgs, Vec<String>) {
    let mut errors = Errors::default();
    let args = FlowArgs::parse(tokens, &mut errors);
    (args, errors.into_messages())
}

fn step(tokens: &TokenStream) -> (StepArgs, Vec<String>) {
    let mut errors = Errors::default();
    let args = StepArgs::parse(&parse_quote!(#[step(#tokens)]), &mut errors);
    (args, errors.into_messages())
}

fn names(mentions: Option<Vec<Mention>>) -> Vec<String> {
    let mentions = mentions.expect("a list").into_iter();
    mentions.map(|mention| mention.name.to_string()).collect()
}

fn pattern(tokens: &TokenStream) -> Result<String, Vec<String>> {
    let (args, mistakes) = step(&quote!(if = { #tokens }));
    match args.required {
        Some(pattern) if mistakes.is_empty() => Ok(pattern.json(|key| key).text()),
        _ => Err(mistakes),
    }
}

#[test]
fn every_argument_of_a_flow_is_read() {
    let (args, mistakes) = flow(quote! {
        input = HashMap<String, Vec<u8>>, state = (), slug = "audit_v2", with_step_queues, step_enum = AuditStep,
        output = Audited, output_derive = [Debug, serde::Serialize], crate = crate::workflows, max_attempts = 1,
        base_delay = "1s", max_delay = "2m", give_up_after = "1d", timeout = "3s",
    });
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert_eq!(
        args.input.map(|ty| show(&ty)).as_deref(),
        Some("HashMap<String, Vec<u8>>")
    );
    assert_eq!(
        args.slug.map(|slug| slug.value()).as_deref(),
        Some("audit_v2")
    );
    assert!(args.with_step_queues);
    assert_eq!(args.step_enum.expect("a name"), "AuditStep");
    assert_eq!(args.output.expect("a name"), "Audited");
    assert_eq!(
        args.output_derive.iter().map(show).collect::<Vec<_>>(),
        ["Debug", "serde::Serialize"]
    );
    assert_eq!(show(&args.krate), "crate::workflows");
    assert_eq!(
        (args.max_attempts, args.base_delay, args.timeout),
        (Some(1), Some(1), Some(3))
    );
    assert_eq!(
        (args.max_delay, args.give_up_after),
        (Some(120), Some(86_400))
    );
    assert_eq!(args.keys.iter().count(), 13);
}

#[test]
fn every_argument_of_a_step_is_read() {
    let (args, mistakes) = step(&quote! {
        slug = "fetch_v1", depends_on = [parse, r#type], max_attempts = 2147483647, base_delay = "1h30m", max_delay = "2h",
        give_up_after = "3d", timeout = "2d", start_delay = "0s", if = { parse: [] }, if_not = { parse: [1] }, when_unmet = "skip-cascade", when_exhausted = "fail"
    });
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert_eq!(
        args.slug.map(|slug| slug.value()).as_deref(),
        Some("fetch_v1")
    );
    assert_eq!(names(args.depends_on), ["parse", "r#type"]);
    assert_eq!(
        (args.base_delay, args.timeout, args.start_delay),
        (Some(5400), Some(172_800), Some(0))
    );
    assert_eq!(
        (args.max_delay, args.give_up_after),
        (Some(7200), Some(259_200))
    );
    assert_eq!(args.max_attempts, Some(i32::MAX.unsigned_abs()));
    assert!(args.required.is_some() && args.forbidden.is_some());
    assert_eq!(args.when_unmet, Some(SkipMode::SkipCascade));
    assert_eq!(args.when_exhausted, Some(SkipMode::Fail));

    for (tokens, end) in [
        (quote!(on = failure), RunsOn::Failure),
        (quote!(on = end), RunsOn::End),
    ] {
        let (args, mistakes) = step(&tokens);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert_eq!(args.runs_on, Some(end));
    }

    let (args, mistakes) = step(&quote!(map = input));
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert_eq!(args.map.expect("a name").name, "input");
}

#[test]
fn reading_goes_on_after_a_mistake() {
    let (args, mistakes) = flow(quote!(
        max_attempts = 0,
        timout = "3s",
        input = u8,
        slug,
        timeout = "5s"
    ));
    assert_eq!(
        mistakes,
        [
            "`max_attempts` counts attempts, the first one included; it must be at least 1; write 1 for a single attempt",
            "`#[flow]` has no argument `timout`\n\nhelp: did you mean `timeout`?",
            "`slug` needs a value; write `slug = \"my_flow_v2\"`",
        ]
    );
    assert!(args.input.is_some());
    assert_eq!(args.timeout, Some(5));
    assert!(args.has("max_attempts") && !args.has("timout"));
}

#[test]
fn a_word_of_another_library_is_taken_as_the_argument_that_it_means() {
    let (args, mistakes) = step(&quote!(needs = [parse], retries = 2, deadline = 7));
    assert_eq!(
        mistakes,
        [
            "`#[step]` has no argument `needs`\n\nhelp: it is called `depends_on` here",
            "`#[step]` has no argument `retries`\n\nhelp: it is called `max_attempts` here; it counts the first attempt too",
            "`#[step]` has no argument `deadline`\n\nhelp: it is called `timeout` here",
        ]
    );
    assert!(args.key("depends_on").is_some() && !args.keys.has_unknown);
    assert_eq!(names(args.depends_on), ["parse"]);

    let (args, mistakes) = step(&quote!(
        max_attempts = 5,
        max_attempt = 2,
        timeot = "5s",
        timeout = "7s"
    ));
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert_eq!((args.max_attempts, args.timeout), (Some(5), Some(7)));

    let (_, mistakes) = flow(quote!(after = [parse], context = State));
    assert_eq!(
        mistakes,
        [
            "`#[flow]` has no argument `after`\n\nhelp: it is called `depends_on` here, and is an argument of `#[step]`",
            "`#[flow]` has no argument `context`\n\nhelp: it is called `state` here",
        ]
    );
}

#[test]
fn bounds_are_those_of_the_definition() {
    for (tokens, mistake) in [
        (
            quote!(timeout = "2s"),
            "`timeout` must be at least 3 seconds; raise it, or leave it out",
        ),
        (
            quote!(base_delay = "0s"),
            "`base_delay` must be at least 1 second; raise it, or leave it out",
        ),
        (
            quote!(max_attempts = 2147483648),
            "`max_attempts` is too large; the most is 2147483647; lower it",
        ),
        (
            quote!(max_attempts = 99999999999999999999),
            "`max_attempts` is too large; the most is 2147483647; lower it",
        ),
    ] {
        let (args, mistakes) = step(&tokens);
        assert_eq!(mistakes, [mistake]);
        assert_eq!(
            (args.timeout, args.base_delay, args.max_attempts),
            (None, None, None)
        );
    }
    let (_, mistakes) = step(&quote!(start_delay = "24856d"));
    assert!(
        mistakes[0].starts_with("bad duration for `start_delay`: "),
        "{mistakes:?}"
    );
}

#[test]
fn names_that_are_written_otherwise_are_taken_as_meant() {
    let (args, mistakes) = step(&quote!(depends_on = ["parse", inspect,]));
    assert!(
        mistakes.is_empty(),
        "reported when the steps are known: {mistakes:?}"
    );
    assert_eq!(names(args.depends_on), ["parse", "inspect"]);
    let (args, mistakes) = step(&quote!(depends_on = parse));
    assert_eq!(
        mistakes,
        ["`depends_on` takes a list; write `depends_on = [parse]`"]
    );
    assert_eq!(names(args.depends_on), ["parse"]);
}

#[test]
fn patterns_become_json() {
    let json = pattern(&quote! {
        n: 1, "odd-key": [1, -2.5, 1e300, 0x10, 1_000, true, null, { a: "q\"uo\\te\n" }], r#type: [], empty: {},
    });
    assert_eq!(
        json,
        Err(vec![
            "this number can't be kept exactly; use an integer of at most 64 bits, a smaller fraction, or a string on both sides".to_owned()
        ]),
        "1e300 is beyond the integers that a fraction keeps apart"
    );
    let json = pattern(&quote! {
        n: 1, "odd-key": [1, -2.5, 1e-7, 0x10, 1_000, 3., true, null, { a: "q\"uo\\te\n" }], r#type: [], empty: {},
    });
    assert_eq!(
        json.as_deref(),
        Ok(
            r#"{"n":1,"odd-key":[1,-2.5,1e-7,16,1000,3.0,true,null,{"a":"q\"uo\\te\u000a"}],"type":[],"empty":{}}"#
        )
    );
    for (tokens, number) in [
        (quote!(n: 18446744073709551615), "18446744073709551615"),
        (quote!(n: -9223372036854775808), "-9223372036854775808"),
    ] {
        assert_eq!(pattern(&tokens), Ok(format!("{{\"n\":{number}}}")));
    }
    assert!(pattern(&quote!(n: -9223372036854775809)).is_err());
}

#[test]
fn a_key_can_be_renamed_at_the_top_only() {
    let (args, _) = step(&quote!(if = { parse: { parse: 1 } }));
    let pattern = args.required.expect("a pattern");
    assert_eq!(
        pattern.json(|_| "parse_v1").text(),
        r#"{"parse_v1":{"parse":1}}"#
    );
}

#[test]
fn what_is_no_step_passes_through() {
    let source = FlowImpl::parse(quote! {
        #[cfg(test)]
        impl inner::Audit {
            const LIMIT: [u8; { 3 }] = [0; 3];
            type Broken = ;
            #[step] async fn parse(#[from(input)] (a, b): (u8, u8), c: u8) -> StepResult<u8> { let x = ; }
            #[step] async fn unreadable(c: ) {}
            #[doc = "x"] #[step] const N: u8 = 3;
            fn helper() {}
        }
    })
    .expect("an impl");
    assert_eq!(show(&source.self_ty), "inner::Audit");
    let steps: Vec<_> = source.steps().collect();
    assert_eq!(steps.len(), 1);
    assert!(matches!(&steps[0].from[..], [From::Name(name), From::Absent] if name == "input"));
    let unreadable: Vec<_> = source
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Unreadable { name, .. } => Some(name.as_ref().map(ToString::to_string)),
            _ => None,
        })
        .collect();
    assert_eq!(unreadable, [Some("unreadable".to_owned()), None]);
}
