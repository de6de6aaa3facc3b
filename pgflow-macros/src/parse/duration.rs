//! The values that are durations.

use pgflow_definition::{
    duration::{DurationProblem, meant, parse_duration, write_duration},
    options::{MAX_OPTION, NO_TIMEOUT, OptionName, OptionProblem},
};
use proc_macro2::{Ident, TokenStream};
use syn::{Expr, Lit, LitStr, parse::ParseStream};

use super::value::{equals, is_constant, whole, without_suffix, wrong_form};

const EXAMPLE: &str = "\"30s\"";

/// The key is one of the options that are durations.
pub(super) fn duration(key: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    let option = [
        OptionName::BaseDelay,
        OptionName::MaxDelay,
        OptionName::GiveUpAfter,
        OptionName::Timeout,
        OptionName::StartDelay,
    ]
    .into_iter()
    .find(|option| key == option.as_str())
    .unwrap_or_else(|| unreachable!("`{key}` is not a duration"));
    equals(key, input, EXAMPLE)?;
    let written = whole(input)?;
    let Ok(literal) = syn::parse2::<LitStr>(written.clone()) else {
        return Err(unquoted(key, option, &written));
    };
    let literal = without_suffix(key, literal)?;
    if option == OptionName::Timeout && literal.value().trim() == "none" {
        return Ok(NO_TIMEOUT);
    }
    let at = |message: String| syn::Error::new(literal.span(), message);
    let seconds = parse_duration(&literal.value())
        .map_err(|problem| at(bad(key, option, &literal.value(), &problem)))?;
    within(key, option, seconds).map_err(at)
}

fn bad(key: &Ident, option: OptionName, text: &str, problem: &DurationProblem) -> String {
    let help = match meant(text) {
        Some(seconds) => format!("write `{key} = \"{}\"`", proposal(option, seconds)),
        None => problem.help(),
    };
    format!("bad duration for `{key}`: {}; {help}", problem.fault())
}

/// The duration, or the least that is allowed.
fn proposal(option: OptionName, seconds: u32) -> String {
    write_duration(seconds.max(option.minimum()))
}

fn within(key: &Ident, option: OptionName, seconds: u32) -> Result<u32, String> {
    let problem = match option.check(seconds) {
        Ok(()) => return Ok(seconds),
        Err(problem) => problem,
    };
    let (bound, limit, fix) = match problem {
        OptionProblem::TooSmall => ("least", option.minimum(), "raise it"),
        OptionProblem::TooLarge => ("most", MAX_OPTION, "lower it"),
    };
    let plural = if limit == 1 { "" } else { "s" };
    Err(format!(
        "`{key}` must be at {bound} {limit} second{plural}; {fix}, or leave it out"
    ))
}

/// `5m`, `30`, `-5`, `Duration::from_secs(30)`, `TIMEOUT`.
fn unquoted(key: &Ident, option: OptionName, written: &TokenStream) -> syn::Error {
    const TAKES: &str = "a string with a unit";
    if is_constant(written) {
        return wrong_form(key, written, TAKES, EXAMPLE);
    }
    let text = written.to_string().replace(' ', "");
    let message = if text.starts_with('-') {
        format!("`{key}` can't be negative; write for example `{key} = {EXAMPLE}`")
    } else if let Ok(number) = text.parse::<u32>() {
        let text = format!("{}s", number.max(option.minimum()));
        format!("a duration needs a unit: write `{key} = \"{text}\"`")
    } else if let Ok(seconds) = parse_duration(&text) {
        let text = match option.check(seconds) {
            Ok(()) => text,
            Err(_) => proposal(option, seconds),
        };
        format!("a duration is a string: write `{key} = \"{text}\"`")
    } else if let Some(seconds) = meant(&text).or_else(|| constructed(written)) {
        format!(
            "`{key}` takes {TAKES}, of whole seconds: write `{key} = \"{}\"`",
            proposal(option, seconds)
        )
    } else if option == OptionName::Timeout && text.to_lowercase() == "none" {
        format!("`{key}` takes a string: write `{key} = \"none\"`")
    } else {
        format!("`{key}` takes {TAKES}, such as `{key} = {EXAMPLE}`")
    };
    syn::Error::new_spanned(written, message)
}

/// The seconds of `Duration::from_secs(30)` or `30.seconds()`.
fn constructed(written: &TokenStream) -> Option<u32> {
    let (function, argument) = match syn::parse2::<Expr>(written.clone()).ok()? {
        Expr::Call(call) => match *call.func {
            Expr::Path(path) => (
                path.path.segments.last()?.ident.clone(),
                call.args.first()?.clone(),
            ),
            _ => return None,
        },
        Expr::MethodCall(call) => (call.method, *call.receiver),
        _ => return None,
    };
    let Expr::Lit(argument) = argument else {
        return None;
    };
    let number = match &argument.lit {
        Lit::Int(number) => number.base10_digits(),
        Lit::Float(number) => number.base10_digits(),
        _ => return None,
    };
    let unit = match function.to_string().as_str() {
        "from_nanos" => "ns",
        "from_micros" => "us",
        "from_millis" | "milliseconds" => "ms",
        "from_secs" | "from_secs_f32" | "from_secs_f64" | "seconds" | "secs" => "s",
        "from_mins" | "minutes" => "m",
        "from_hours" | "hours" => "h",
        "days" | "from_days" => "d",
        "weeks" | "from_weeks" => "w",
        _ => return None,
    };
    meant(&format!("{number}{unit}"))
}
