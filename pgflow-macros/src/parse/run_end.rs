//! The value of `on`: the end of the run that a step waits for.

use pgflow_definition::RunsOn;
use proc_macro2::Ident;
use syn::{LitStr, parse::ParseStream};

use super::value;
use crate::{errors::Errors, names::nearest};

/// A word. One that is written in another way is reported, and then taken as meant.
pub(super) fn parse(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<RunsOn> {
    value::equals(key, input, RunsOn::End.as_str())?;
    let written = value::whole(input)?;
    let named = |word: &str| RunsOn::ALL.into_iter().find(|end| end.as_str() == word);
    if let Some(end) = syn::parse2::<Ident>(written.clone())
        .ok()
        .and_then(|word| named(&word.to_string()))
    {
        return Ok(end);
    }
    let (word, is_text) = match syn::parse2::<LitStr>(written.clone()) {
        Ok(text) => (text.value(), true),
        Err(_) => (value::last_word(&written), false),
    };
    let meant = meant(&word);
    let message = match meant {
        Some(end) if is_text => format!(
            "`{key}` takes a word, not a string; write `{key} = {}`",
            end.as_str()
        ),
        Some(end) => format!(
            "`{key}` takes `failure` or `end`; write `{key} = {}`",
            end.as_str()
        ),
        None => format!(
            "`{key}` takes `failure`, for a step that runs when the run has failed, or `end`, for one that runs whenever it has ended; write \
             for example `{key} = end`"
        ),
    };
    let error = syn::Error::new_spanned(written, message);
    let Some(end) = meant else {
        return Err(error);
    };
    errors.push(error);
    Ok(end)
}

/// The end that a word resembles, or is another word for.
fn meant(word: &str) -> Option<RunsOn> {
    const OTHER_WORDS: [(&str, RunsOn); 6] = [
        ("failed", RunsOn::Failure),
        ("error", RunsOn::Failure),
        ("fail", RunsOn::Failure),
        ("always", RunsOn::End),
        ("ended", RunsOn::End),
        ("finish", RunsOn::End),
    ];
    let words = RunsOn::ALL.into_iter().map(|end| (end.as_str(), end));
    let words: Vec<(&str, RunsOn)> = words.chain(OTHER_WORDS).collect();
    let nearest = nearest(word, words.iter().map(|(word, _)| *word))?;
    (words.into_iter()).find_map(|(word, end)| (word == nearest).then_some(end))
}
