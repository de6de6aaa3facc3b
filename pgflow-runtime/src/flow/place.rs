//! The place of a mistake in a JSON text, as a path such as `packages[3].version`.
//!
//! `serde_json` reports only line and column. Wrappers that follow a type on its way through the
//! text would make the compiler build the deserializer of each type twice, which was half of the
//! compile time of a flow. So code that knows no type follows the text instead.

use std::fmt::Write;

/// Keys in a path are cut at this length: they come from the data.
const MAX_KEY: usize = 64;

/// A path is cut at this length: where JSON is nested deeply, it would be most of a message.
const MAX_PATH: usize = 120;

/// The path of the value at a position, as `serde_json` gives it for an error: it has read so many
/// bytes of that line.
///
/// That is the value that ends there or begins there; with a key read, it is the object. The whole
/// text has an empty path.
pub(super) fn path_at(json: &str, line: usize, column: usize) -> String {
    let Some(line_starts_at) = start_of_line(json, line) else {
        return String::new();
    };
    let end = (line_starts_at + column).min(json.len());
    let mut open = Vec::new();
    let mut rest = Tokens { json, at: 0 };
    while let Some(token) = rest.next_before(end) {
        match token {
            Token::Open(frame) => open.push(frame),
            Token::Close => drop(open.pop()),
            Token::Comma => match open.last_mut() {
                Some(Frame::Array(index)) => *index += 1,
                Some(Frame::Object { key, .. }) => *key = None,
                None => {}
            },
            Token::Text(text) => {
                if let Some(Frame::Object { last_text, .. }) = open.last_mut() {
                    *last_text = text;
                }
            }
            Token::Colon => {
                if let Some(Frame::Object { key, last_text }) = open.last_mut() {
                    *key = Some(*last_text);
                }
            }
        }
    }
    shortened(path(&open))
}

/// `None` when there is no such line; `serde_json` counts from 1, and says 0 when it does not know.
fn start_of_line(json: &str, line: usize) -> Option<usize> {
    match line.checked_sub(1)? {
        0 => Some(0),
        before => json
            .match_indices('\n')
            .nth(before - 1)
            .map(|(at, _)| at + 1),
    }
}

/// A value that has been begun.
enum Frame<'j> {
    /// The index of the element.
    Array(usize),
    /// The key of the value, from its colon to the next comma.
    Object {
        key: Option<&'j str>,
        last_text: &'j str,
    },
}

enum Token<'j> {
    Open(Frame<'j>),
    Close,
    Comma,
    Colon,
    /// The text between the quotes of a string.
    Text(&'j str),
}

struct Tokens<'j> {
    json: &'j str,
    at: usize,
}

impl<'j> Tokens<'j> {
    /// The next token that begins before `end`; numbers and words are no tokens, because they
    /// change no place.
    fn next_before(&mut self, end: usize) -> Option<Token<'j>> {
        while self.at < end {
            let byte = self.json.as_bytes()[self.at];
            self.at += 1;
            return Some(match byte {
                b'{' => Token::Open(Frame::Object {
                    key: None,
                    last_text: "",
                }),
                b'[' => Token::Open(Frame::Array(0)),
                b'}' | b']' => Token::Close,
                b',' => Token::Comma,
                b':' => Token::Colon,
                b'"' => Token::Text(self.text()),
                _ => continue,
            });
        }
        None
    }

    /// Reads up to the closing quote.
    fn text(&mut self) -> &'j str {
        let start = self.at;
        let mut is_escaped = false;
        for (offset, byte) in self.json.as_bytes()[start..].iter().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    self.at = start + offset + 1;
                    return &self.json[start..start + offset];
                }
                _ => {}
            }
        }
        self.at = self.json.len();
        &self.json[start..]
    }
}

fn path(open: &[Frame<'_>]) -> String {
    let mut path = String::new();
    for frame in open {
        match frame {
            // Writing to a string does not fail.
            Frame::Array(index) => {
                let _ = write!(path, "[{index}]");
            }
            Frame::Object { key: None, .. } => {}
            Frame::Object { key: Some(key), .. } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key[..key.floor_char_boundary(MAX_KEY)]);
            }
        }
    }
    path
}

/// A path of which both ends are kept, when it is too long for a message.
fn shortened(path: String) -> String {
    if path.len() <= MAX_PATH {
        return path;
    }
    let head = path.floor_char_boundary(MAX_PATH / 2 - 1);
    let tail = path.ceil_char_boundary(path.len() - (MAX_PATH / 2 - 1));
    format!("{}..{}", &path[..head], &path[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path at the `|`, which is then taken out.
    fn path_at_mark(marked: &str) -> String {
        let (before, after) = marked.split_once('|').expect("a mark");
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
        path_at(&format!("{before}{after}"), line, column)
    }

    #[test]
    fn a_value_is_found_at_its_beginning_and_at_its_end() {
        for (marked, path) in [
            ("|1", ""),
            ("1|", ""),
            ("[|1,2]", "[0]"),
            ("[1|,2]", "[0]"),
            ("[1,|2]", "[1]"),
            ("[1,2|]", "[1]"),
            ("[1,2]|", ""),
            (r#"{"a":|1}"#, "a"),
            (r#"{"a":1|}"#, "a"),
            (r#"{"a":1}|"#, ""),
            (r#"{"a":"x|y","b":2}"#, "a"),
            (r#"{"a":1,"b":{"c":[{"d":"x"|}]}}"#, "b.c[0].d"),
            (r#"{"a":1,"b":{"c":[{"d":"x"}|]}}"#, "b.c[0]"),
            (r#"{"a":1,"b":{"c":[{"d":"x"}]|}}"#, "b.c"),
            ("[[], [1,|[2]]]", "[1][1]"),
        ] {
            assert_eq!(path_at_mark(marked), path, "{marked}");
        }
    }

    #[test]
    fn a_key_is_no_place_of_its_own() {
        for marked in [
            r#"{|"a":1}"#,
            r#"{"a"|:1}"#,
            r#"{"b":2,|"a":1}"#,
            r#"{"b":2,"a"|:1}"#,
        ] {
            assert_eq!(path_at_mark(marked), "", "{marked}");
        }
    }

    #[test]
    fn text_does_not_look_like_structure() {
        assert_eq!(path_at_mark(r#"["a\",[\\",{"k":"}]\\","l":|1}]"#), "[1].l");
        assert_eq!(path_at_mark("[\n 1,\n {\"ä\": [0,|1]}]"), "[1].ä[1]");
    }

    #[test]
    fn a_long_key_is_cut() {
        let path = path_at_mark(&format!(r#"{{"{}":|1}}"#, "é".repeat(100)));
        assert_eq!(path, "é".repeat(MAX_KEY / 2));
    }

    #[test]
    fn a_long_path_keeps_both_ends() {
        let path = path_at_mark(&format!("{}\"é|\"", r#"{"é":[7,"#.repeat(60)));
        assert!(path.len() <= MAX_PATH, "{path}");
        assert!(
            path.starts_with("é[1].é[1]") && path.ends_with("é[1]"),
            "{path}"
        );
        assert_eq!(path.matches("..").count(), 1);
    }

    #[test]
    fn a_place_that_is_not_in_the_text_is_the_end_or_nothing() {
        assert_eq!(path_at("[1]", 0, 0), "");
        assert_eq!(path_at("[1]", 2, 1), "");
        assert_eq!(path_at("[1", 1, 99), "[0]");
    }
}
