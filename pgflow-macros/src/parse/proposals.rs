//! Checks that each proposal in a message is right: read by the macro itself, it holds no mistake.

use proc_macro2::TokenStream;
use syn::parse_quote;

use super::{FlowArgs, StepArgs};
use crate::errors::Errors;

fn step(arguments: &str) -> Vec<String> {
    let tokens: TokenStream = arguments.parse().expect("tokens");
    let mut errors = Errors::default();
    StepArgs::parse(&parse_quote!(#[step(#tokens)]), &mut errors);
    errors.into_messages()
}

fn flow(arguments: &str) -> Vec<String> {
    let mut errors = Errors::default();
    FlowArgs::parse(arguments.parse().expect("tokens"), &mut errors);
    errors.into_messages()
}

/// The argument that is proposed in place of a wrong one.
fn proposal(wrong: &str, message: &str) -> String {
    if let Some((_, meant)) = message.split_once("did you mean `") {
        let (key, _) = meant.split_once('`').expect("a closing tick");
        let value = wrong.split_once('=').map(|(_, value)| format!(" ={value}"));
        return format!("{key}{}", value.unwrap_or_default());
    }
    let code = [
        "write `",
        "write for example `",
        "write just `",
        "as in `",
        "such as `",
    ]
    .into_iter()
    .filter_map(|words| Some(message.rsplit_once(words)?.1))
    .min_by_key(|code| code.len())
    .unwrap_or_else(|| panic!("`{message}` proposes nothing"));
    let (code, _) = code.split_once('`').expect("a closing tick");
    code.to_owned()
}

fn check(read: fn(&str) -> Vec<String>, wrong: &[&str]) {
    for wrong in wrong {
        let mistakes = read(wrong);
        let [message] = &mistakes[..] else {
            panic!("`{wrong}` is one mistake: {mistakes:#?}");
        };
        let proposal = proposal(wrong, message);
        let left = read(&proposal);
        assert!(
            left.is_empty(),
            "`{wrong}`: {message}\n`{proposal}`: {left:#?}"
        );
    }
}

#[test]
fn of_steps() {
    check(
        step,
        &[
            "timeout = 5m",
            "timeout = 1h30m",
            "timeout = 500ms",
            "timeout = 1.5h",
            "timeout = 1s",
            "timeout = 0",
            "timeout = -5",
            "timeout = 5 m",
            "timeout = \"00:05:00\"",
            "timeout = \"500ms\"",
            "timeout = \"1.5h\"",
            "timeout = \"30 seconds\"",
            "timeout = \"5m\"s",
            "timeout = Duration::from_secs(30)",
            "timeout = std::time::Duration::from_millis(1500)",
            "timeout = 5.minutes()",
            "timeout = TIMEOUT",
            "timeout = crate::TIMEOUT",
            "timeout = concat!(\"5\", \"s\")",
            "timeout = None",
            "timeout = soon",
            "timeout: \"5s\"",
            "timeout == \"5s\"",
            "timeout(\"5s\")",
            "timeout",
            "timeout =",
            "start_delay = 0.5s",
            "base_delay = 250us",
            "max_attempts = 3times",
            "max_attempts = 5x",
            "max_attempts = \"3\"",
            "max_attempts = \"many\"",
            "max_attempts = 3.0",
            "max_attempts = 0.5",
            "max_attempts = MAX",
            "max_attempts = true",
            "max_attempts = 1 + 2",
            "max-attempts = 3",
            "max_attempt = 3",
            "if = {}",
            "if_not = {}",
            "if = input.size == 3",
            "if = input.user.plan == \"a\"",
            "if = size == -3",
            "if = input.plan != \"a\"",
            "if_not = input.plan != \"a\"",
            "if = !input.is_paid",
            "if = input.is_paid",
            "if = PLAN",
            "if = 3",
            "if",
            "if(plan: \"a\")",
            "when_exhausted = skip",
            "when_exhausted = skip-cascade",
            "when_exhausted = SkipMode::SkipCascade",
            "when_exhausted = Fail",
            "when_exhausted(skip)",
            "on_element_failure = null",
            "on_element_failure = Null",
            "on_element_failure(null)",
            "on_element_failure",
            "on = \"failure\"",
            "on = RunsOn::Failure",
            "on = failed",
            "on = always",
            "on = success",
            "on(end)",
            "on",
            "depends_on = parse",
            "depends_on = (parse, fetch)",
            "depends_on = { parse }",
            "depends_on = \"parse\", \"fetch\"",
            "depends_on = Step::ParseAll",
            "depends_on = STEPS",
            "depends_on[parse]",
            "depends_on(parse)",
            "depends-on = [parse]",
            "slug = fetch_v1",
            "slug = my-step",
            "slug = SLUG",
            "slug = 3",
            "slug = \"fetch\"s",
            "map",
        ],
    );
}

#[test]
fn of_flows() {
    check(
        flow,
        &[
            "Lockfile",
            "Vec<Lockfile>",
            "input = \"Vec<String>\"",
            "input = [String]",
            "input = str",
            "input = [[u8; 2]]",
            "input = Lockfile { .. }",
            "input = Lockfile(3)",
            "input = 3",
            "input(Lockfile)",
            "input: Lockfile",
            "inputs = Lockfile",
            "state = dyn Send + Sync",
            "state = App::new()",
            "with_step_queues(true)",
            "with_step_queues: true",
            "with_step_queues = true",
            "with-step-queues",
            "step_enum = \"AuditStep\"",
            "step_enum = u8",
            "step_enum = a::Step",
            "output = str",
            "crate = \"pgflow\"",
            "crate = \"::my::pgflow\"",
            "crate = 3",
            "crate = pgflow::prelude",
            "output_derive = Debug, Clone",
            "output_derive = \"Debug\"",
            "output_derive = (Debug, serde::Serialize)",
            "output_derive(Debug)",
        ],
    );
}
