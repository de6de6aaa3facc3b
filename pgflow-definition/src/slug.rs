//! Slugs of flows and steps.

/// The most characters that a slug may have.
pub const MAX_SLUG: usize = 128;

/// Names that parameters of a step are bound by, and which therefore can't be steps.
pub const BINDING_NAMES: [&str; 4] = ["input", "item", "ctx", "state"];

/// The fault of a slug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlugProblem {
    /// It has no characters.
    Empty,
    /// Something other than an ASCII letter, a digit or `_` starts at this byte.
    BadCharacter {
        /// Offset in bytes.
        at: usize,
    },
    /// It starts with a digit.
    LeadingDigit,
    /// It starts with `_`.
    LeadingUnderscore,
    /// It ends with `_`.
    TrailingUnderscore,
    /// It contains `__`.
    DoubleUnderscore,
    /// It has more than [`MAX_SLUG`] characters.
    TooLong {
        /// The length of the slug.
        len: usize,
    },
    /// It is `run`.
    Reserved,
}

/// Checks a slug: 1 to 128 ASCII letters, digits and `_`; a letter first, a letter or digit last;
/// no `__`; not `run`.
///
/// `const`, so that a definition written manually can be checked by the compiler:
///
/// ```
/// const _: () = assert!(pgflow_definition::slug::check_slug("crate_audit").is_ok());
/// ```
pub const fn check_slug(slug: &str) -> Result<(), SlugProblem> {
    let bytes = slug.as_bytes();
    if bytes.is_empty() {
        return Err(SlugProblem::Empty);
    }
    // Characters first: only when all are ASCII is the number of bytes the number of characters.
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() && bytes[at] != b'_' {
            return Err(SlugProblem::BadCharacter { at });
        }
        at += 1;
    }
    if bytes[0].is_ascii_digit() {
        return Err(SlugProblem::LeadingDigit);
    }
    if bytes[0] == b'_' {
        return Err(SlugProblem::LeadingUnderscore);
    }
    let mut at = 1;
    while at < bytes.len() {
        if bytes[at] == b'_' && bytes[at - 1] == b'_' {
            return Err(SlugProblem::DoubleUnderscore);
        }
        at += 1;
    }
    if bytes[bytes.len() - 1] == b'_' {
        return Err(SlugProblem::TrailingUnderscore);
    }
    if bytes.len() > MAX_SLUG {
        return Err(SlugProblem::TooLong { len: bytes.len() });
    }
    if matches!(bytes, b"run") {
        return Err(SlugProblem::Reserved);
    }
    Ok(())
}

impl SlugProblem {
    /// Describes the fault and the expectation, to follow the words "the slug of step `x`".
    pub fn describe(self, slug: &str) -> String {
        match self {
            Self::Empty => format!("is empty; a slug has 1 to {MAX_SLUG} characters"),
            Self::BadCharacter { at } => {
                let found = slug.get(at..).and_then(|rest| rest.chars().next());
                let found = found.unwrap_or(char::REPLACEMENT_CHARACTER).escape_debug();
                format!("contains `{found}`; a slug has only ASCII letters, digits and `_`")
            }
            Self::LeadingDigit => "starts with a digit; a slug starts with a letter".into(),
            Self::LeadingUnderscore => "starts with `_`; a slug starts with a letter".into(),
            Self::TrailingUnderscore => "ends with `_`; a slug ends with a letter or digit".into(),
            Self::DoubleUnderscore => "contains `__`, which separates the flow from the step in \
                                       queue names; a slug has single `_` only"
                .into(),
            Self::TooLong { len } => {
                format!("has {len} characters; a slug has at most {MAX_SLUG}")
            }
            Self::Reserved => {
                "is reserved; any other word will do, such as `runs` or `execute`".into()
            }
        }
    }
}
