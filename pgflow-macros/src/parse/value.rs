//! The values of arguments.

use pgflow_definition::{
    SkipMode,
    duration::parse_duration,
    options::{MAX_OPTION, NO_TIMEOUT, OptionName, OptionProblem},
};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::{Expr, LitInt, LitStr, Token, parse::ParseStream};

use crate::{errors::Errors, model::types::show, names::nearest};

/// The `=` after a key; `example` is what could follow.
pub(super) fn equals(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Result<Span> {
    let Some(equals) = input.parse::<Option<Token![=]>>()? else {
        return Err(without_equals(key, input, example));
    };
    if input.is_empty() || input.peek(Token![,]) {
        return Err(syn::Error::new(
            key.span(),
            format!("`{key}` has no value; write `{key} = {example}`"),
        ));
    }
    Ok(equals.span)
}

/// Nothing, or a value in delimiters, as other attributes have them.
fn without_equals(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Error {
    let Ok(group) = input.parse::<Group>() else {
        return syn::Error::new(
            key.span(),
            format!("`{key}` needs a value; write `{key} = {example}`"),
        );
    };
    let value = show(&group.stream());
    let value = match example.chars().next() {
        _ if value.is_empty() => example.to_owned(),
        Some('[') => format!("[{value}]"),
        Some('{') => format!("{{ {value} }}"),
        _ => value,
    };
    syn::Error::new_spanned(
        quote!(#key #group),
        format!("`{key}` takes its value after a `=`; write `{key} = {value}`"),
    )
}

/// All tokens up to the next comma.
pub(super) fn whole(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

pub(super) fn flag(key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    match input.parse::<Option<Token![=]>>()? {
        None => Ok(()),
        Some(equals) => Err(syn::Error::new_spanned(
            quote!(#key #equals),
            format!("`{key}` is a flag and takes no value; write just `{key}`"),
        )),
    }
}

pub(super) fn slug(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Result<LitStr> {
    equals(key, input, &format!("\"{example}\""))?;
    input.parse().map_err(|error| {
        syn::Error::new(
            error.span(),
            format!("`{key}` takes a string, such as `{key} = \"{example}\"`"),
        )
    })
}

pub(super) fn type_name(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Result<Ident> {
    equals(key, input, example)?;
    input.parse().map_err(|error| {
        syn::Error::new(
            error.span(),
            format!("`{key}` takes a name for the type, such as `{key} = {example}`"),
        )
    })
}

const ATTEMPTS: &str = "`max_attempts` counts attempts, the first one included; it must be at least 1; write 1 for a single attempt";

pub(super) fn attempts(key: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    equals(key, input, "3")?;
    if let Some(minus) = input.parse::<Option<Token![-]>>()? {
        let number: TokenTree = input.parse()?;
        return Err(syn::Error::new_spanned(quote!(#minus #number), ATTEMPTS));
    }
    let literal: LitInt = input.parse().map_err(|error| {
        syn::Error::new(
            error.span(),
            format!("`{key}` takes a whole number, such as `{key} = 3`"),
        )
    })?;
    let number = literal.base10_parse().unwrap_or(u32::MAX);
    OptionName::MaxAttempts
        .check(number)
        .map(|()| number)
        .map_err(|problem| {
            let message = match problem {
                OptionProblem::TooSmall => ATTEMPTS.to_owned(),
                OptionProblem::TooLarge => {
                    format!("`{key}` is too large; the most is {MAX_OPTION}; lower it")
                }
            };
            syn::Error::new(literal.span(), message)
        })
}

/// The key is one of the options that are durations.
pub(super) fn duration(key: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    let option = [
        OptionName::BaseDelay,
        OptionName::Timeout,
        OptionName::StartDelay,
    ]
    .into_iter()
    .find(|option| key == option.as_str())
    .unwrap_or_else(|| unreachable!("`{key}` is not a duration"));
    let literal = duration_literal(key, input)?;
    if option == OptionName::Timeout && literal.value().trim() == "none" {
        return Ok(NO_TIMEOUT);
    }
    let seconds = parse_duration(&literal.value()).map_err(|problem| {
        syn::Error::new(
            literal.span(),
            format!("bad duration for `{key}`: {problem}"),
        )
    })?;
    option.check(seconds).map(|()| seconds).map_err(|problem| {
        let (bound, limit, fix) = match problem {
            OptionProblem::TooSmall => ("least", option.minimum(), "raise it"),
            OptionProblem::TooLarge => ("most", MAX_OPTION, "lower it"),
        };
        let plural = if limit == 1 { "" } else { "s" };
        syn::Error::new(
            literal.span(),
            format!("`{key}` must be at {bound} {limit} second{plural}; {fix}, or leave it out"),
        )
    })
}

fn duration_literal(key: &Ident, input: ParseStream<'_>) -> syn::Result<LitStr> {
    equals(key, input, "\"30s\"")?;
    if input.peek(LitInt) {
        let number: LitInt = input.parse()?;
        let digits = number.base10_digits();
        return Err(syn::Error::new(
            number.span(),
            format!("a duration needs a unit: write `{key} = \"{digits}s\"`"),
        ));
    }
    let expected = format!("`{key}` takes a string with a unit, such as `{key} = \"30s\"`");
    if input.peek(LitStr) {
        return input.parse();
    }
    // An expression is underlined as a whole, anything else at its first token.
    match input.fork().parse::<Expr>() {
        Ok(_) => Err(syn::Error::new_spanned(input.parse::<Expr>()?, expected)),
        Err(error) => Err(syn::Error::new(error.span(), expected)),
    }
}

/// A mode. One that is misspelled is reported, and then taken as meant.
pub(super) fn mode(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<SkipMode> {
    const MODES: [SkipMode; 3] = [SkipMode::Fail, SkipMode::Skip, SkipMode::SkipCascade];
    const TAKES: &str = "takes \"fail\", \"skip\" or \"skip-cascade\"";
    equals(key, input, "\"skip\"")?;
    let literal: LitStr = input
        .parse()
        .map_err(|error| syn::Error::new(error.span(), format!("`{key}` {TAKES}")))?;
    let word = literal.value();
    let named = |word: &str| MODES.into_iter().find(|mode| mode.as_str() == word);
    if let Some(mode) = named(&word) {
        return Ok(mode);
    }
    let meant = nearest(&word, MODES.map(SkipMode::as_str));
    let help = meant.map_or_else(
        || format!("it {TAKES}"),
        |mode| format!("did you mean \"{mode}\"?"),
    );
    let error = syn::Error::new(
        literal.span(),
        format!("`{key}` has no mode \"{word}\"\n\nhelp: {help}"),
    );
    match meant.and_then(named) {
        Some(mode) => {
            errors.push(error);
            Ok(mode)
        }
        None => Err(error),
    }
}
