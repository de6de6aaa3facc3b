//! The faults of the errors that an edit causes.

use std::{collections::BTreeSet, fmt, fs, path::Path};

use cargo_metadata::diagnostic::{Diagnostic, DiagnosticLevel, DiagnosticSpan};

use crate::{
    lab::in_text,
    mutation::{Mutation, Verdict},
    source::Source,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The macro or rustc.
    Panic,
    /// A wrong flow compiles.
    Silent,
    /// A right flow does not compile.
    Refused,
    TooMany,
    /// The error stands at another line.
    Place,
    /// The error stands at the attribute as a whole.
    WholeAttribute,
    /// A message holds a name of generated code.
    InternalName,
    /// The message lacks the way back.
    NoHint,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::Panic,
        Self::Silent,
        Self::Refused,
        Self::TooMany,
        Self::Place,
        Self::WholeAttribute,
        Self::InternalName,
        Self::NoHint,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::TooMany => "too-many",
            Self::Place => "place",
            Self::WholeAttribute => "whole",
            Self::InternalName => "internal",
            Self::NoHint => "no-hint",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Words that tell a name of the generated code from one that a user knows.
pub struct Names {
    internal: BTreeSet<String>,
    public: BTreeSet<String>,
}

impl Names {
    /// Internal is what `__private` exports and the facade does not; public are the words of the
    /// documentation.
    pub fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the workspace");
        let words = |paths: &[&str]| -> BTreeSet<String> {
            let texts = paths.iter().map(|path| {
                let path = root.join(path);
                fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            });
            texts
                .flat_map(|text| identifiers(&text).map(str::to_owned).collect::<Vec<_>>())
                .collect()
        };
        let mut public = words(&[
            "src/lib.rs",
            "pgflow-macros/src/flow.md",
            "pgflow-macros/src/step.md",
            "pgflow-definition/src/lib.rs",
        ]);
        // Of rustc and the standard library.
        public.extend(
            [
                "macro_rules",
                "into_iter",
                "to_owned",
                "as_ref",
                "as_str",
                "thread_local",
            ]
            .map(str::to_owned),
        );
        public.extend(["Send", "Sync", "Some", "None", "Result", "Option"].map(str::to_owned));
        let private = words(&["pgflow-runtime/src/flow/__private/mod.rs"]);
        let is_name = |word: &String| word.contains('_') || word.starts_with(char::is_uppercase);
        let internal = private
            .into_iter()
            .filter(|word| is_name(word) && !public.contains(word))
            .collect();
        Self { internal, public }
    }

    /// A word of a message that no user wrote and no documentation has.
    fn internal_in(&self, message: &str, text: &str, is_of_rustc: bool) -> Option<String> {
        let of_text: BTreeSet<&str> = identifiers(text).collect();
        // Prose does not hold names; what is quoted does.
        let quoted = message.split('`').skip(1).step_by(2);
        quoted
            .flat_map(identifiers)
            // Underscores alone are spoken of.
            .filter(|word| !of_text.contains(word) && word.chars().any(|it| it != '_'))
            .find(|word| {
                let is_snake = word.contains('_') && !word.starts_with(char::is_uppercase);
                word.contains("__")
                    || self.internal.contains(*word)
                    || (is_of_rustc && is_snake && !self.public.contains(*word))
            })
            .map(str::to_owned)
    }
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let words = text.split(move |character| !is_part(character));
    words.filter(|word| !word.is_empty() && !word.starts_with(|first: char| first.is_ascii_digit()))
}

/// All faults of one mutant, each once.
pub fn judge(
    source: &Source,
    mutation: &Mutation,
    errors: &[Diagnostic],
    names: &Names,
) -> BTreeSet<Fault> {
    let mut faults = BTreeSet::new();
    let text = mutation.apply(source);
    for error in errors {
        if is_panic(error) {
            faults.insert(Fault::Panic);
        }
        if internal_name(names, error, &text).is_some() {
            faults.insert(Fault::InternalName);
        }
    }
    let expected = match &mutation.verdict {
        Verdict::Compiles if errors.is_empty() => return faults,
        Verdict::Compiles => {
            faults.insert(Fault::Refused);
            return faults;
        }
        Verdict::Fails(expected) => expected,
    };
    if errors.is_empty() {
        faults.insert(Fault::Silent);
        return faults;
    }
    if errors.len() > expected.most {
        faults.insert(Fault::TooMany);
    }
    let lines = mutation.lines(source);
    for error in errors {
        let primary = primary(error);
        let is_whole = primary.iter().any(|span| is_whole_attribute(span, &text));
        if is_whole && !expected.may_be_whole {
            faults.insert(Fault::WholeAttribute);
        }
        if !is_whole && !primary.iter().any(|span| lines.contains(&span.line_start)) {
            faults.insert(Fault::Place);
        }
    }
    if let Some(hint) = &expected.hint {
        // Not what rustc shows of the text, which is no advice.
        let is_given = errors
            .iter()
            .flat_map(texts)
            .any(|message| message.contains(hint.as_str()));
        if !is_given {
            faults.insert(Fault::NoHint);
        }
    }
    faults
}

fn is_panic(error: &Diagnostic) -> bool {
    matches!(error.level, DiagnosticLevel::Ice)
        || error.message.contains("a bug in `#[flow]`")
        || error.message.contains("macro panicked")
        || error.message.contains("attribute panicked")
}

fn primary(error: &Diagnostic) -> Vec<&DiagnosticSpan> {
    let primary = error.spans.iter().filter(|span| span.is_primary);
    primary.map(in_text).collect()
}

/// Returns whether all of `#[flow(..)]` is underlined, or the block below it.
fn is_whole_attribute(span: &DiagnosticSpan, text: &str) -> bool {
    let (start, end) = (span.byte_start as usize, span.byte_end as usize);
    let underlined = text.get(start..end).unwrap_or_default();
    underlined.starts_with("#[flow") && underlined.ends_with(']')
}

/// Its message, labels and proposals, and those of its notes.
fn texts(error: &Diagnostic) -> Box<dyn Iterator<Item = &str> + '_> {
    let labels = error
        .spans
        .iter()
        .flat_map(|span| [&span.label, &span.suggested_replacement]);
    let labels = labels.flatten().map(String::as_str);
    let children = error.children.iter().flat_map(texts);
    Box::new(
        [error.message.as_str()]
            .into_iter()
            .chain(labels)
            .chain(children),
    )
}

pub fn rendered(error: &Diagnostic) -> &str {
    error.rendered.as_deref().unwrap_or(&error.message)
}

/// The first name of generated code in an error.
pub fn internal_name(names: &Names, error: &Diagnostic, text: &str) -> Option<String> {
    // The macro's own messages have no code, and names for examples.
    let is_of_rustc = error.code.is_some();
    texts(error)
        .filter(|message| !(is_of_rustc && names_the_bound(message)))
        .find_map(|message| names.internal_in(message, text, is_of_rustc))
}

/// Returns `true` if rustc names the trait and the function whose bound has failed. It does so
/// below each such error, whatever the sentence of the trait says, and no attribute turns that off.
fn names_the_bound(message: &str) -> bool {
    let is_of_trait = message.starts_with("the trait `") && message.contains("is not implemented");
    is_of_trait
        || message.starts_with("required by a bound in `")
        || message.starts_with("required by this bound in `")
}
