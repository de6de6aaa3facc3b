//! Text that others wrote, made safe for a terminal and for a log of one line per event.

use std::borrow::Cow;

/// Returns `text` with each control, bidirectional control and line separator escaped.
///
/// Error texts and names come from handlers, from data and from other database users. Printed raw,
/// they could forge log lines, hide what stands before them or drive the terminal. Escapes look as
/// in Rust: `\n`, `\u{1b}`. A backslash stays as it is, so that paths and regular expressions stay
/// readable: the result is for people, not for a parser.
///
/// ```
/// use pgflow_runtime::printable::printable;
///
/// assert_eq!(printable("plain é 😀"), "plain é 😀");
/// assert_eq!(printable("a\nb\u{1b}[2J\u{202e}c"), r"a\nb\u{1b}[2J\u{202e}c");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_unprintable) else {
        return Cow::Borrowed(text);
    };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    for character in text[first..].chars() {
        if is_unprintable(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Arabic letter mark, left-to-right and right-to-left mark.
            '\u{061C}' | '\u{200E}' | '\u{200F}'
            // Line and paragraph separator.
            | '\u{2028}' | '\u{2029}'
            // Embeddings, overrides and isolates.
            | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_borrowed_unchanged() {
        for text in ["", "a: b", r"C:\n", "é😀", "שלום", "e\u{301}", "a\u{200D}b"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn every_control_is_escaped() {
        let controls = (0..0x20).chain(0x7F..0xA0);
        for control in controls.filter_map(char::from_u32) {
            let text = printable(&format!("a{control}b")).into_owned();
            assert!(!text.chars().any(char::is_control), "{text}");
            assert!(text.starts_with("a\\") && text.ends_with('b'), "{text}");
        }
        assert_eq!(printable("\t\r\n\0\u{7}"), r"\t\r\n\u{0}\u{7}");
    }

    #[test]
    fn nothing_turns_the_direction_or_starts_a_line() {
        let marks = [0x061C, 0x200E, 0x200F, 0x2028, 0x2029];
        let ranges = (0x202A..=0x202E).chain(0x2066..=0x2069);
        for code in marks.into_iter().chain(ranges) {
            let mark = char::from_u32(code).expect("a character");
            assert_eq!(printable(&format!("é{mark}")), format!("é\\u{{{code:x}}}"));
        }
    }

    #[test]
    fn escaping_twice_changes_nothing() {
        let once = printable("\u{1b}]0;owned\u{7}").into_owned();
        assert_eq!(printable(&once), once);
    }
}
