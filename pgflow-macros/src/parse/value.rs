//! The values of arguments.

use pgflow_definition::{
    ElementFailure, SkipMode,
    options::{MAX_OPTION, OptionName, OptionProblem},
};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Lit, LitInt, LitStr, Path, Token, Visibility,
    parse::{ParseStream, discouraged::Speculative},
};

use super::{
    arguments::{begins_argument, ends_value},
    delimited::group,
};
use crate::{errors::Errors, model::types::show, names::nearest};

/// The `=` after a key; `example` is what could follow.
pub(super) fn equals(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Result<Span> {
    if input.peek(Token![:]) || input.peek(Token![==]) || input.peek(Token![=>]) {
        let sign: TokenTree = input.parse()?;
        let value = whole(input)?;
        let shown = show(&value);
        let shown = shown.trim_start_matches(['=', '>', ' ']);
        let is_unquoted = example.starts_with('"') && !shown.starts_with('"');
        let shown = if shown.is_empty() || is_unquoted {
            example
        } else {
            shown
        };
        return Err(syn::Error::new_spanned(
            quote!(#key #sign #value),
            format!("`{key}` takes its value after a `=`; write `{key} = {shown}`"),
        ));
    }
    let Some(equals) = input.parse::<Option<Token![=]>>()? else {
        return Err(without_equals(key, input, example));
    };
    if ends_value(input) {
        return Err(syn::Error::new(
            key.span(),
            format!("`{key}` has no value; write `{key} = {example}`"),
        ));
    }
    Ok(equals.span)
}

/// Nothing, or a value in delimiters, as other attributes have them.
fn without_equals(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Error {
    let ahead = input.fork();
    let Ok(group) = group(&ahead) else {
        return syn::Error::new(
            key.span(),
            format!("`{key}` needs a value; write `{key} = {example}`"),
        );
    };
    input.advance_to(&ahead);
    let value = show(&group.stream());
    let value = match example.chars().next() {
        _ if value.is_empty() => example.to_owned(),
        Some('[') => format!("[{value}]"),
        Some('{') => format!("{{ {value} }}"),
        Some('"') if !value.starts_with('"') => example.to_owned(),
        _ => value,
    };
    syn::Error::new_spanned(
        quote!(#key #group),
        format!("`{key}` takes its value after a `=`; write `{key} = {value}`"),
    )
}

/// All tokens of a value: up to the next comma, or to the next argument where the comma is missing.
pub(super) fn whole(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    let mut can_end = false;
    while !ends_value(input) {
        if can_end && begins_argument(input) {
            break;
        }
        let token: TokenTree = input.parse()?;
        can_end = !matches!(token, TokenTree::Punct(_));
        tokens.extend([token]);
    }
    Ok(tokens)
}

/// An element of a list.
pub(super) fn up_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

pub(super) fn flag(key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    if ends_value(input) || begins_argument(input) {
        return Ok(());
    }
    let value = whole(input)?;
    Err(syn::Error::new_spanned(
        quote!(#key #value),
        format!("`{key}` is a flag and takes no value; write just `{key}`"),
    ))
}

/// Returns whether something is computed elsewhere: a macro that is being expanded sees names of
/// values, and not the values.
pub(super) fn is_constant(written: &TokenStream) -> bool {
    let is_loud = |name: &Ident| {
        let name = name.to_string();
        name.len() > 1 && !name.contains(char::is_lowercase) && name.contains(char::is_alphabetic)
    };
    let tokens: Vec<TokenTree> = written.clone().into_iter().collect();
    match &tokens[..] {
        [
            TokenTree::Ident(_),
            TokenTree::Punct(bang),
            TokenTree::Group(_),
        ] => bang.as_char() == '!',
        _ => syn::parse2::<Path>(written.clone())
            .is_ok_and(|path| (path.segments.last()).is_some_and(|last| is_loud(&last.ident))),
    }
}

/// A value that is not of the form that the argument takes.
pub(super) fn wrong_form(
    key: &Ident,
    written: &TokenStream,
    takes: &str,
    proposal: &str,
) -> syn::Error {
    let message = if is_constant(written) {
        format!(
            "`{key}` takes {takes}, and the macro can't see the value of `{}`; write the value itself, as in `{key} = {proposal}`",
            show(written)
        )
    } else {
        format!("`{key}` takes {takes}; write `{key} = {proposal}`")
    };
    syn::Error::new_spanned(written, message)
}

pub(super) fn slug(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Result<LitStr> {
    let example = format!("\"{example}\"");
    equals(key, input, &example)?;
    let written = whole(input)?;
    if let Ok(text) = syn::parse2::<LitStr>(written.clone()) {
        return without_suffix(key, text);
    }
    // Of `my-flow` too.
    let name = written.to_string().replace(' ', "").replace('-', "_");
    let proposal = match syn::parse_str::<Ident>(&name) {
        Ok(name) if !is_constant(&written) => format!("\"{name}\""),
        _ => example,
    };
    Err(wrong_form(key, &written, "a string", &proposal))
}

pub(super) fn without_suffix(key: &Ident, text: LitStr) -> syn::Result<LitStr> {
    if text.suffix().is_empty() {
        return Ok(text);
    }
    let proposal = format!("{:?}", text.value());
    let written = text.to_token_stream();
    Err(wrong_form(key, &written, "a string", &proposal))
}

/// The name of a type that will be made.
pub(super) fn type_name(key: &Ident, input: ParseStream<'_>, example: &str) -> syn::Result<Ident> {
    const BUILT_IN: &[&str] = &[
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8",
        "u16", "u32", "u64", "u128", "usize",
    ];
    equals(key, input, example)?;
    let written = whole(input)?;
    match syn::parse2::<Ident>(written.clone()) {
        Ok(name) if BUILT_IN.iter().any(|built_in| name == built_in) => {
            let takes = format!("a name of your choice, and `{name}` is a type of the language");
            Err(wrong_form(key, &written, &takes, example))
        }
        Ok(name) => Ok(name),
        Err(_) => {
            let text = syn::parse2::<LitStr>(written.clone());
            let name = text.and_then(|text| text.parse::<Ident>());
            let proposal = name.map_or_else(|_| example.to_owned(), |name| name.to_string());
            Err(wrong_form(key, &written, "a name for the type", &proposal))
        }
    }
}

/// The visibility of a type that will be made.
pub(super) fn visibility(key: &Ident, input: ParseStream<'_>) -> syn::Result<Visibility> {
    const EXAMPLE: &str = "pub(crate)";
    equals(key, input, EXAMPLE)?;
    let written = whole(input)?;
    match syn::parse2::<Visibility>(written.clone()) {
        Ok(Visibility::Inherited) | Err(_) => {
            let text = syn::parse2::<LitStr>(written.clone());
            let meant = text.and_then(|text| text.parse::<Visibility>());
            let proposal = match &meant {
                Ok(Visibility::Public(_) | Visibility::Restricted(_)) => {
                    show(&meant?).replace(' ', "")
                }
                Ok(Visibility::Inherited) | Err(_) => EXAMPLE.to_owned(),
            };
            Err(wrong_form(key, &written, "a visibility", &proposal))
        }
        Ok(visibility) => Ok(visibility),
    }
}

const ATTEMPTS: &str = "`max_attempts` counts attempts, the first one included; it must be at least 1; write 1 for a single attempt";

pub(super) fn attempts(key: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    equals(key, input, "3")?;
    let written = whole(input)?;
    let wrong = |proposal: &str| Err(wrong_form(key, &written, "a whole number", proposal));
    let literal: LitInt = match syn::parse2::<Lit>(written.clone()) {
        Ok(Lit::Int(number)) => number,
        Ok(Lit::Float(number)) => {
            let number = number.base10_digits().split(['.', 'e']).next();
            return wrong(number.filter(|it| is_count(it)).unwrap_or("3"));
        }
        Ok(Lit::Str(text)) => {
            let number = text.value();
            return wrong(Some(number.trim()).filter(|it| is_count(it)).unwrap_or("3"));
        }
        Ok(_) | Err(_) => return wrong("3"),
    };
    if literal.base10_digits().starts_with('-') {
        return Err(syn::Error::new_spanned(written, ATTEMPTS));
    }
    if !is_integer_suffix(literal.suffix()) {
        return wrong(literal.base10_digits());
    }
    let number = literal.base10_digits().parse().unwrap_or(u32::MAX);
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

fn is_count(text: &str) -> bool {
    let number: Option<u32> = text.parse().ok();
    number.is_some_and(|number| OptionName::MaxAttempts.check(number).is_ok())
}

/// A suffix that makes an integer of one of Rust's types is a matter of taste; all others would be
/// dropped unread.
fn is_integer_suffix(suffix: &str) -> bool {
    let size = suffix.trim_start_matches(['u', 'i']);
    suffix.is_empty()
        || (suffix.len() == size.len() + 1
            && ["8", "16", "32", "64", "128", "size"].contains(&size))
}

pub(super) fn mode(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<SkipMode> {
    const MODES: [SkipMode; 3] = [SkipMode::Fail, SkipMode::Skip, SkipMode::SkipCascade];
    let takes = "\"fail\", \"skip\" or \"skip-cascade\"";
    one_of(
        key,
        input,
        errors,
        MODES.map(|mode| (mode.as_str(), mode)),
        "skip",
        takes,
    )
}

pub(super) fn element_failure(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<ElementFailure> {
    const MODES: [ElementFailure; 2] = [ElementFailure::Fail, ElementFailure::Null];
    let takes = "\"fail\" or \"null\"";
    one_of(
        key,
        input,
        errors,
        MODES.map(|mode| (mode.as_str(), mode)),
        "null",
        takes,
    )
}

/// A mode. One that is written in another way is reported, and then taken as meant.
fn one_of<T: Copy, const N: usize>(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
    modes: [(&'static str, T); N],
    example: &str,
    all: &str,
) -> syn::Result<T> {
    equals(key, input, &format!("\"{example}\""))?;
    let written = whole(input)?;
    let text = syn::parse2::<LitStr>(written.clone());
    let is_text = text.as_ref().is_ok_and(|text| text.suffix().is_empty());
    let word = match text {
        Ok(text) => text.value(),
        Err(_) if is_constant(&written) => String::new(),
        Err(_) => last_word(&written),
    };
    let named = |word: &str| {
        let mut modes = modes.iter();
        modes.find_map(|(name, mode)| (*name == word).then_some(*mode))
    };
    if let (Some(mode), true) = (named(&word), is_text) {
        return Ok(mode);
    }
    let meant = nearest(&word, modes.map(|(name, _)| name));
    let message = match (is_text, meant) {
        // So few that they can all be named.
        (true, Some(mode)) if N == 2 => format!(
            "`{key}` has no mode \"{word}\"\n\nhelp: did you mean \"{mode}\"? It takes {all}"
        ),
        (true, Some(mode)) => {
            format!("`{key}` has no mode \"{word}\"\n\nhelp: did you mean \"{mode}\"?")
        }
        (true, None) => format!("`{key}` has no mode \"{word}\"\n\nhelp: it takes {all}"),
        (false, Some(mode)) => {
            format!("`{key}` takes a mode as a string; write `{key} = \"{mode}\"`")
        }
        (false, None) => format!("`{key}` takes {all}"),
    };
    let error = syn::Error::new_spanned(written, message);
    match meant.and_then(named) {
        Some(mode) => {
            errors.push(error);
            Ok(mode)
        }
        None => Err(error),
    }
}

/// `skip-cascade` of `skip-cascade`, `skip_cascade` or `SkipMode::SkipCascade`.
pub(super) fn last_word(written: &TokenStream) -> String {
    use heck::ToKebabCase;
    let text = written.to_string().replace(' ', "");
    let last = text.rsplit("::").next().unwrap_or_default();
    last.to_kebab_case()
}
