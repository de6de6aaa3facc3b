//! The text of a failed attempt, as it is stored.

use std::{
    error::Error,
    fmt::{self, Write},
};

use super::marker;

/// The longest message that is stored, in bytes.
const LIMIT: usize = 8 * 1024;

/// A chain longer than this is a mistake of an error type, such as one that names itself as its
/// source.
const MAX_LINKS: usize = 64;

/// An error and its sources.
pub(super) fn links<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&link| link.source()).take(MAX_LINKS)
}

/// `outer: inner: root`, at most 8 KiB, without the character U+0000, which Postgres can't store.
///
/// A link that only repeats the end of what stands there already is left out: many error types
/// print their source.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut message = Bounded::default();
    for link in links(error).filter(|link| !marker::is_marker(*link)) {
        let mut text = Bounded::default();
        // The one error that `Bounded` returns is that it is full; what fits is kept.
        let is_full = write!(text, "{link}").is_err();
        if message.0.ends_with(&text.0) && !message.0.is_empty() {
            continue;
        }
        let separator = if message.0.is_empty() { "" } else { ": " };
        if write!(message, "{separator}{}", text.0).is_err() || is_full {
            break;
        }
    }
    message.0
}

/// A text as it is stored: at most 8 KiB, without the character U+0000.
pub(crate) fn stored_text(text: &str) -> String {
    let mut message = Bounded::default();
    // The one error that `Bounded` returns is that it is full; what fits is kept.
    let _ = message.write_str(text);
    message.0
}

/// Takes text up to the limit; an error type that prints a megabyte costs no more than that.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split('\0') {
            let room = LIMIT - self.0.len();
            self.0.push_str(&part[..part.floor_char_boundary(room)]);
            if part.len() > room {
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::StepError;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: String,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&str]) -> Layer {
        let (first, rest) = texts.split_first().expect("at least one layer");
        Layer {
            text: (*first).to_owned(),
            source: (!rest.is_empty()).then(|| Box::new(layers(rest))),
        }
    }

    fn message(texts: &[&str]) -> String {
        StepError::from(layers(texts)).message()
    }

    #[test]
    fn the_chain_is_joined() {
        assert_eq!(message(&["outer", "inner", "root"]), "outer: inner: root");
    }

    #[test]
    fn a_source_that_was_printed_already_is_left_out() {
        assert_eq!(
            message(&["outer: inner", "inner", "root"]),
            "outer: inner: root"
        );
    }

    #[test]
    fn nul_is_removed() {
        assert_eq!(message(&["a\0b\0", "\0"]), "ab");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = format!("x{}", "é".repeat(LIMIT));
        let text = message(&[&long, "root"]);
        assert_eq!(text.len(), LIMIT - 1);
        assert!(text.ends_with('é'));
        let exact = "x".repeat(LIMIT);
        assert_eq!(message(&[&exact, "root"]), exact);
    }

    #[derive(Debug)]
    struct Endless;

    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("endless")
        }
    }

    impl Error for Endless {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }

    #[test]
    fn an_error_that_is_its_own_source_ends() {
        assert_eq!(StepError::from(Endless).message(), "endless");
    }
}
