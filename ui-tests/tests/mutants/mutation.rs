//! One edit of a right flow, and what has to come of it.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

use fastrand::Rng;
use similar::TextDiff;

use crate::source::{Place, Source, has_word};

#[derive(Debug, Clone)]
pub struct Mutation {
    /// The edit and its target, such as "rename: a dependency".
    pub kind: &'static str,
    pub edits: Vec<Edit>,
    pub verdict: Verdict,
}

/// A text in place of another one.
#[derive(Debug, Clone)]
pub struct Edit {
    pub at: Place,
    pub text: String,
}

#[derive(Debug, Clone)]
pub enum Verdict {
    /// The meaning is the same, or another right one.
    Compiles,
    Fails(Expected),
}

#[derive(Debug, Clone)]
pub struct Expected {
    /// The largest number of errors that the edit may cause: one, or one for each place that it
    /// edits.
    pub most: usize,
    /// An error may also stand at a line that names one of these.
    pub names: Vec<String>,
    /// The text that the error has to contain, because the fix is obvious.
    pub hint: Option<String>,
    /// `true` if the attribute as a whole is the right place.
    pub may_be_whole: bool,
}

impl Edit {
    pub fn new(at: &Place, text: impl Into<String>) -> Self {
        Self {
            at: at.clone(),
            text: text.into(),
        }
    }

    pub fn remove(at: &Place) -> Self {
        Self::new(at, "")
    }

    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::new(&(at..at), text)
    }

    /// Takes an element of a list away, with one comma.
    pub fn remove_element(source: &Source, at: &Place) -> Self {
        let after = &source.text[at.end..];
        let spaces = after.len() - after.trim_start().len();
        if after[spaces..].starts_with(',') {
            return Self::remove(&(at.start..at.end + spaces + 1));
        }
        let before = source.text[..at.start].trim_end();
        let start = before.strip_suffix(',').map_or(at.start, str::len);
        Self::remove(&(start..at.end))
    }

    pub fn swap(source: &Source, one: &Place, other: &Place) -> Vec<Self> {
        vec![
            Self::new(one, source.at(other)),
            Self::new(other, source.at(one)),
        ]
    }
}

impl Mutation {
    pub fn compiles(kind: &'static str, edits: Vec<Edit>) -> Self {
        Self {
            kind,
            edits,
            verdict: Verdict::Compiles,
        }
    }

    pub fn fails(kind: &'static str, edits: Vec<Edit>) -> Self {
        let expected = Expected {
            most: 1,
            names: Vec::new(),
            hint: None,
            may_be_whole: false,
        };
        Self {
            kind,
            edits,
            verdict: Verdict::Fails(expected),
        }
    }

    pub fn at_most(self, most: usize) -> Self {
        self.expecting(|expected| expected.most = most)
    }

    pub fn naming<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.expecting(|expected| expected.names.extend(names.into_iter().map(N::into)))
    }

    pub fn hinting(self, hint: impl Into<String>) -> Self {
        self.expecting(|expected| expected.hint = Some(hint.into()))
    }

    pub fn of_the_whole(self) -> Self {
        self.expecting(|expected| expected.may_be_whole = true)
    }

    fn expecting(mut self, change: impl FnOnce(&mut Expected)) -> Self {
        if let Verdict::Fails(expected) = &mut self.verdict {
            change(expected);
        }
        self
    }

    /// The text after the edit.
    pub fn apply(&self, source: &Source) -> String {
        let (text, _) = self.applied(source);
        text
    }

    /// The lines, counted from 1, at which an error is right.
    pub fn lines(&self, source: &Source) -> Vec<usize> {
        let (text, edited) = self.applied(source);
        let names: &[String] = match &self.verdict {
            Verdict::Fails(expected) => &expected.names,
            Verdict::Compiles => &[],
        };
        let named = (text.lines().enumerate())
            .filter(|(_, line)| names.iter().any(|name| has_word(line, name)))
            .map(|(index, _)| index + 1);
        edited
            .into_iter()
            .flat_map(|range| {
                let line = |at: usize| text[..at].matches('\n').count() + 1;
                // What is missing is reported at what follows it.
                let next = text[range.end..].trim_start();
                let next = text.len() - next.len();
                line(range.start)..=line(range.end.max(if range.is_empty() { next } else { 0 }))
            })
            .chain(named)
            .collect()
    }

    fn applied(&self, source: &Source) -> (String, Vec<Range<usize>>) {
        let mut edits: Vec<&Edit> = self.edits.iter().collect();
        edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
        let (mut text, mut places, mut from) = (String::new(), Vec::new(), 0);
        for edit in edits {
            assert!(edit.at.start >= from, "edits overlap: {:?}", self.edits);
            text.push_str(&source.text[from..edit.at.start]);
            places.push(text.len()..text.len() + edit.text.len());
            text.push_str(&edit.text);
            from = edit.at.end;
        }
        text.push_str(&source.text[from..]);
        (text, places)
    }

    pub fn diff(&self, source: &Source) -> String {
        let text = self.apply(source);
        let diff = TextDiff::from_lines(source.text, text.as_str());
        let mut unified = diff.unified_diff();
        unified.context_radius(2).to_string()
    }
}

/// A wrong spelling of a name, the same for the same place and seed, and none of `taken`.
pub fn misspelt(word: &str, at: &Place, seed: u64, taken: &[&str]) -> String {
    let (prefix, letters) = match word.strip_prefix("r#") {
        Some(rest) => ("r#", rest),
        None => ("", word),
    };
    let mut hasher = DefaultHasher::new();
    (word, at.start, at.end, seed).hash(&mut hasher);
    let mut rng = Rng::with_seed(hasher.finish());
    loop {
        let mut letters: Vec<char> = letters.chars().collect();
        let position = rng.usize(1..letters.len().max(2));
        match rng.u8(0..4) {
            0 if letters.len() > 3 => {
                letters.remove(position);
            }
            1 if position + 1 < letters.len() => letters.swap(position, position + 1),
            2 if position < letters.len() => letters[position] = rng.lowercase(),
            _ => letters.insert(position, rng.lowercase()),
        }
        let result = format!("{prefix}{}", letters.into_iter().collect::<String>());
        let is_name = syn::parse_str::<syn::Ident>(&result).is_ok();
        let is_taken = taken.iter().any(|taken| *taken == result) || result == word;
        if is_name && !is_taken && !result.contains("__") && !result.ends_with('_') {
            return result;
        }
    }
}
