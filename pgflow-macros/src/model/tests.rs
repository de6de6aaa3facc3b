use proc_macro2::TokenStream;
use quote::quote;

use super::*;
use crate::{
    errors::Errors,
    parse::{FlowArgs, FlowImpl},
};

/// Reads the steps of a flow over a `Lockfile`.
fn read<T>(steps: &TokenStream, look: impl FnOnce(&Flow<'_>) -> T) -> T {
    let mut errors = Errors::default();
    let args = FlowArgs::parse(quote!(input = Lockfile), &mut errors);
    let mut source = FlowImpl::parse(quote!(impl Audit { #steps })).expect("an impl");
    source.read_step_args(&mut errors);
    assert!(errors.is_empty(), "{:?}", errors.into_messages());
    look(&Flow::read(&args, &source))
}

fn slugs(flow: &Flow<'_>) -> Vec<String> {
    flow.with_definition(|definition| {
        let steps = definition.steps.iter();
        steps.map(|step| step.slug.to_owned()).collect()
    })
}

#[test]
fn steps_stand_after_their_dependencies_and_stay_in_order_otherwise() {
    let steps = quote! {
        #[step] async fn a() -> StepResult<u8> {}
        #[step(depends_on = [d])] async fn b(d: u8) -> StepResult<u8> {}
        #[step] async fn c() -> StepResult<u8> {}
        #[step(depends_on = [a])] async fn d() -> StepResult<u8> {}
    };
    assert_eq!(read(&steps, slugs), ["a", "c", "d", "b"]);
}

#[test]
fn steps_of_a_cycle_stay_as_they_are_written() {
    let steps = quote! {
        #[step(depends_on = [b])] async fn a() -> StepResult<u8> {}
        #[step(depends_on = [a])] async fn b() -> StepResult<u8> {}
    };
    assert_eq!(read(&steps, slugs), ["a", "b"]);
}

#[test]
fn dependencies_and_conditions_name_functions_and_mean_slugs() {
    let steps = quote! {
        #[step(slug = "parse_v1", if = { fetch: 1 })] async fn parse() -> StepResult<u8> {}
        #[step(depends_on = [parse], if = { parse: 1 }, if_not = { parse: { parse: 2 } })]
        async fn fetch(parse: Option<u8>) -> StepResult<u8> {}
    };
    read(&steps, |flow| {
        flow.with_definition(|definition| {
            let [parse, fetch] = definition.steps else {
                panic!("two steps")
            };
            assert_eq!(
                parse.condition.required,
                Some(r#"{"fetch":1}"#),
                "of the flow's input"
            );
            assert_eq!(fetch.depends_on, ["parse_v1"]);
            assert_eq!(fetch.condition.required, Some(r#"{"parse_v1":1}"#));
            assert_eq!(
                fetch.condition.forbidden,
                Some(r#"{"parse_v1":{"parse":2}}"#)
            );
        });
    });
}

#[test]
fn parameters_bind_by_name() {
    let steps = quote! {
        #[step] async fn parse(_input: &Lockfile) -> StepResult<u8> {}
        #[step] async fn _fetch(input: Lockfile) -> StepResult<u8> {}
        #[step(depends_on = [parse, _fetch, r#type])]
        async fn report(_parse: u8, _fetch: u8, #[from(r#type)] (a, b): (u8, u8), ctx: &StepContext) -> StepResult<u8> {}
        #[step(map = parse)] async fn r#type(#[from(item)] Element { a }: Element) -> StepResult<u8> {}
    };
    read(&steps, |flow| {
        let bound = |step: usize| -> Vec<String> {
            let params = flow.steps[step].params.iter();
            params
                .map(|param| match &param.binding {
                    Binding::Input => "input".to_owned(),
                    Binding::Item => "item".to_owned(),
                    Binding::Ctx => "ctx".to_owned(),
                    Binding::State => "state".to_owned(),
                    Binding::End => "end".to_owned(),
                    Binding::Dependency(index) => flow.steps[*index].name.clone(),
                    Binding::Poisoned(_) => "poisoned".to_owned(),
                })
                .collect()
        };
        assert_eq!(bound(0), ["input"]);
        assert_eq!(bound(2), ["parse", "_fetch", "type", "ctx"]);
        assert_eq!(bound(3), ["item"]);
        assert!(flow.steps[0].needs_flow_input() && !flow.steps[2].needs_flow_input());
    });
}

#[test]
fn the_end_of_the_run_binds_in_end_steps_only() {
    let steps = quote! {
        #[step] async fn end(input: Lockfile) -> StepResult<u8> {}
        #[step(depends_on = [end])] async fn report(end: u8) -> StepResult<u8> {}
        #[step(on = failure)] async fn alarm(_end: &RunEnd, input: &Lockfile) -> StepResult<u8> {}
        #[step(on = end, depends_on = [end], when_exhausted = "skip", if = { a: 1 })]
        async fn tidy(#[from(end)] how: RunEnd) -> StepResult<u8> {}
    };
    read(&steps, |flow| {
        let is_end = |step: usize| matches!(flow.steps[step].params[0].binding, Binding::End);
        assert_eq!([1, 2, 3].map(is_end), [false, true, true]);
        assert!(flow.steps[2].needs_flow_input() && !flow.steps[3].needs_flow_input());
        // Its output is in no output, and what it can't have has no effect.
        assert_eq!(
            [0, 1, 2, 3].map(|step| flow.is_leaf(step)),
            [false, true, false, false]
        );
        assert!(flow.steps[3].edges.is_empty() && !flow.skips[3].may_be_skipped);
        assert!(
            flow.with_definition(|definition| definition.problems())
                .is_empty()
        );
    });
}

#[test]
fn a_similar_name_binds_parameters_but_is_no_edge() {
    let steps = quote! {
        #[step(depends_on = [report])] async fn parse() -> StepResult<u8> {}
        #[step(depends_on = [prase])] async fn report(parse: u8) -> StepResult<u8> {}
    };
    read(&steps, |flow| {
        assert!(matches!(
            flow.steps[1].params[0].binding,
            Binding::Dependency(0)
        ));
        let problems = flow.with_definition(|definition| definition.problems());
        assert!(
            problems.is_empty(),
            "a cycle would be a second error: {problems:?}"
        );
    });
}

#[test]
fn skips_follow_the_effective_modes() {
    let steps = quote! {
        #[step(if = { plan: 1 })] async fn unmet() -> StepResult<u8> {}
        #[step(when_exhausted = "skip-cascade")] async fn cascade() -> StepResult<u8> {}
        #[step(depends_on = [cascade])] async fn below() -> StepResult<u8> {}
        #[step(depends_on = [unmet])] async fn beside() -> StepResult<u8> {}
    };
    read(&steps, |flow| {
        let skips = |look: fn(&Skips) -> bool| flow.skips.iter().map(look).collect::<Vec<_>>();
        assert_eq!(
            skips(|it| it.leaves_dependents_without),
            [true, false, false, false]
        );
        assert_eq!(skips(|it| it.cascades), [false, true, false, false]);
        assert_eq!(skips(|it| it.may_be_skipped), [true, true, true, false]);
        let leaves: Vec<bool> = (0..4).map(|index| flow.is_leaf(index)).collect();
        assert_eq!(leaves, [false, false, true, true]);
    });
}

#[test]
fn outputs_are_read_from_the_return_type() {
    let output = |ty: TokenStream| {
        read(
            &quote!(#[step] async fn parse() -> #ty {}),
            |flow| match &flow.steps[0].output {
                Ok(output) => types::show(&output.ok),
                Err(OutputMistake::Missing) => "missing".to_owned(),
                Err(OutputMistake::NotAResult(_)) => "not a result".to_owned(),
                Err(OutputMistake::NullElement(_)) => "null".to_owned(),
                Err(OutputMistake::Future(_, value)) => {
                    format!("a future of {}", types::show(value))
                }
                Err(OutputMistake::Swapped(_)) => "swapped".to_owned(),
                Err(OutputMistake::Alias(_)) => "alias".to_owned(),
                Err(OutputMistake::Unstorable(parts)) => format!("{} unstorable", parts.len()),
            },
        )
    };
    assert_eq!(output(quote!(anyhow::Result<Vec<Self>>)), "Vec<Audit>");
    assert_eq!(output(quote!(Result<u8, ParseError>)), "u8");
    assert_eq!(output(quote!(IoResult<()>)), "()");
    assert_eq!(output(quote!(ParseResult)), "alias");
    for ty in [
        quote!(impl Future<Output = StepResult<u8>> + Send),
        quote!(Pin<Box<dyn Future<Output = StepResult<u8>> + Send + 'static>>),
        quote!(futures::future::BoxFuture<'static, StepResult<u8>>),
    ] {
        assert_eq!(output(ty), "a future of StepResult<u8>");
    }
    assert_eq!(output(quote!(Result<io::Error, u8>)), "swapped");
    assert_eq!(output(quote!(Result<ParseError, String>)), "ParseError");
    assert_eq!(output(quote!(StepResult<[u8]>)), "1 unstorable");
    assert_eq!(output(quote!(Vec<u8>)), "not a result");
    assert_eq!(
        output(quote!(Result<(&str, Vec<&u8>, impl Send), E>)),
        "3 unstorable"
    );
}
