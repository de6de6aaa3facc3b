//! Durations as they are written in attributes: whole numbers with units, such as `30s` or `1h30m`.

use std::error::Error;
use std::fmt;

use crate::options::MAX_OPTION;

/// The reason why a text is not a duration.
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

/// The seconds that a text may stand for that [`parse_duration`] refuses: other units, fractions,
/// `00:05:00`. Parts of a second are rounded up. `None` where it could be anything, as for a number
/// without a unit.
///
/// ```
/// use pgflow_definition::duration::meant;
///
/// assert_eq!(meant("1.5h"), Some(5400));
/// assert_eq!(meant("00:05:00"), Some(300));
/// assert_eq!(meant("30"), None);
/// ```
pub fn meant(text: &str) -> Option<u32> {
    let text = text.trim().to_lowercase();
    let seconds = if text.contains(':') {
        clock(&text)?
    } else {
        sum(&text)?
    };
    let seconds = seconds.ceil();
    if seconds > f64::from(MAX_OPTION) {
        return None;
    }
    // A whole number from 0 to the largest option.
    format!("{seconds:.0}").parse().ok()
}

/// `h:m:s` or `m:s`.
fn clock(text: &str) -> Option<f64> {
    let parts: Option<Vec<f64>> = text.split(':').map(positive).collect();
    match parts?[..] {
        [minutes, seconds] => Some(minutes * 60.0 + seconds),
        [hours, minutes, seconds] => Some((hours * 60.0 + minutes) * 60.0 + seconds),
        _ => None,
    }
}

/// Numbers, each with a unit of some kind.
fn sum(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split_while(after.trim_start(), char::is_alphabetic);
        total += positive(number)? * any_unit(unit)?;
        rest = after.trim_start_matches([' ', ',']);
    }
    (!text.is_empty()).then_some(total)
}

fn positive(number: &str) -> Option<f64> {
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn any_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" | "nanosecond" | "nanoseconds" => 1e-9,
        "us" | "µs" | "microsecond" | "microseconds" => 1e-6,
        "ms" | "millisecond" | "milliseconds" | "msec" | "msecs" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// A number of seconds as [`parse_duration`] reads it.
///
/// ```
/// use pgflow_definition::duration::write_duration;
///
/// assert_eq!(write_duration(5400), "1h30m");
/// assert_eq!(write_duration(0), "0s");
/// ```
pub fn write_duration(seconds: u32) -> String {
    let mut rest = seconds;
    let mut text = String::new();
    for (unit, size) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        let count = rest / size;
        rest %= size;
        if count > 0 || (size == 1 && text.is_empty()) {
            text.push_str(&count.to_string());
            text.push_str(unit);
        }
    }
    text
}

impl DurationProblem {
    /// Returns the fault and the expectation.
    pub fn fault(&self) -> String {
        const FORM: &str = "a duration is made of whole numbers, each with a unit";
        match self {
            Self::Empty => format!("there is nothing in it; {FORM}"),
            Self::NotANumber { at } => format!("`{at}` does not start with a digit; {FORM}"),
            Self::NoUnit { number } => format!("`{number}` has no unit; {FORM}"),
            Self::Fraction { at } => format!("`{at}` is a fraction; {FORM}"),
            Self::UnknownUnit { unit } => {
                format!("`{unit}` is not a unit; the units are d, h, m and s")
            }
            Self::SubSecond { unit } => format!(
                "the unit `{unit}` is less than a second; Postgres keeps whole seconds, and the \
                 units are d, h, m and s"
            ),
            Self::UnitOrder { unit } => format!(
                "the unit `{unit}` comes too late; each unit stands once, the longest first"
            ),
            Self::TooLong => {
                format!("it is too long; the most is {MAX_OPTION} seconds, about 68 years")
            }
        }
    }

    /// Returns the way to fix it, if the intention is unknown.
    pub fn help(&self) -> String {
        match self {
            Self::NoUnit { number } => {
                format!("write for example \"{number}s\" or \"{number}m\"")
            }
            Self::Fraction { .. } => "write for example \"1h30m\" instead of \"1.5h\"".to_owned(),
            Self::TooLong => "write a shorter one".to_owned(),
            _ => "write for example \"30s\", \"5m\" or \"1h30m\"".to_owned(),
        }
    }
}

impl fmt::Display for DurationProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.fault(), self.help())
    }
}

impl Error for DurationProblem {}
