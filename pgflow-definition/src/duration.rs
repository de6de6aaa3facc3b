//! Durations as they are written in attributes: whole numbers with units, such as `30s` or `1h30m`.

use std::error::Error;
use std::fmt;

use crate::options::MAX_OPTION;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DurationProblem {
    /// There is nothing but white space.
    Empty,
    /// A number was expected here.
    NotANumber {
        /// The rest of the text, from there on.
        at: String,
    },
    /// A number without a unit.
    NoUnit {
        /// The number.
        number: String,
    },
    /// A number with a decimal point.
    Fraction {
        /// The part of the text with the point.
        at: String,
    },
    /// A unit that is not one of `d`, `h`, `m`, `s`.
    UnknownUnit {
        /// The unit.
        unit: String,
    },
    /// A unit below a second.
    SubSecond {
        /// The unit.
        unit: String,
    },
    /// A unit that should have come before the one that it follows, or comes twice.
    UnitOrder {
        /// The unit.
        unit: String,
    },
    /// More seconds than Postgres stores in an `integer`.
    TooLong,
}

/// Reads a duration as whole seconds: numbers with the units `d`, `h`, `m` and `s`, each unit at
/// most once, the longest first.
///
/// ```
/// use pgflow_definition::duration::parse_duration;
///
/// assert_eq!(parse_duration("1h30m"), Ok(5400));
/// assert_eq!(
///     parse_duration("30").unwrap_err().to_string(),
///     "`30` has no unit; a duration is made of whole numbers, each with a unit; \
///      write for example \"30s\" or \"30m\"",
/// );
/// ```
pub fn parse_duration(text: &str) -> Result<u32, DurationProblem> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(DurationProblem::Empty);
    }
    let mut total: u32 = 0;
    let mut smallest_unit = u32::MAX;
    while !rest.is_empty() {
        let (number, after_number) = split_while(rest, |c| c.is_ascii_digit());
        if number.is_empty() {
            return Err(DurationProblem::NotANumber { at: rest.into() });
        }
        if after_number.starts_with(['.', ',']) {
            return Err(DurationProblem::Fraction { at: rest.into() });
        }
        let (unit, after_unit) = split_while(after_number.trim_start(), char::is_alphabetic);
        if unit.is_empty() {
            return Err(DurationProblem::NoUnit {
                number: number.into(),
            });
        }
        let unit_seconds = seconds_of(unit)?;
        if unit_seconds >= smallest_unit {
            return Err(DurationProblem::UnitOrder { unit: unit.into() });
        }
        smallest_unit = unit_seconds;
        total = number
            .parse::<u32>()
            .ok()
            .and_then(|count| count.checked_mul(unit_seconds))
            .and_then(|seconds| total.checked_add(seconds))
            .filter(|&seconds| seconds <= MAX_OPTION)
            .ok_or(DurationProblem::TooLong)?;
        rest = after_unit.trim_start();
    }
    Ok(total)
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn seconds_of(unit: &str) -> Result<u32, DurationProblem> {
    match unit {
        "d" => Ok(86_400),
        "h" => Ok(3_600),
        "m" => Ok(60),
        "s" => Ok(1),
        "ms" | "us" | "µs" | "ns" => Err(DurationProblem::SubSecond { unit: unit.into() }),
        _ => Err(DurationProblem::UnknownUnit { unit: unit.into() }),
    }
}

impl fmt::Display for DurationProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORM: &str = "a duration is made of whole numbers, each with a unit";
        const EXAMPLE: &str = "write for example \"30s\", \"5m\" or \"1h30m\"";
        match self {
            Self::Empty => write!(f, "there is nothing in it; {FORM}; {EXAMPLE}"),
            Self::NotANumber { at } => {
                write!(f, "`{at}` does not start with a digit; {FORM}; {EXAMPLE}")
            }
            Self::NoUnit { number } => write!(
                f,
                "`{number}` has no unit; {FORM}; write for example \"{number}s\" or \"{number}m\""
            ),
            Self::Fraction { at } => write!(
                f,
                "`{at}` is a fraction; {FORM}; write for example \"1h30m\" instead of \"1.5h\""
            ),
            Self::UnknownUnit { unit } => {
                write!(
                    f,
                    "`{unit}` is not a unit; the units are d, h, m and s; {EXAMPLE}"
                )
            }
            Self::SubSecond { unit } => write!(
                f,
                "the unit `{unit}` is less than a second; Postgres keeps whole seconds, and the \
                 units are d, h, m and s; {EXAMPLE}"
            ),
            Self::UnitOrder { unit } => write!(
                f,
                "the unit `{unit}` comes too late; each unit stands once, the longest first; \
                 {EXAMPLE}"
            ),
            Self::TooLong => write!(
                f,
                "it is too long; the most is {MAX_OPTION} seconds, about 68 years; write a \
                 shorter one"
            ),
        }
    }
}

impl Error for DurationProblem {}
