//! Ages, such as `30d`: how they are read, and how they are written for people.

use std::time::Duration;

/// Reads an age of at least one second, in whole seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected numbers with units, such as 30d, 12h, 90m, 2w or 1d12h";
    let age = humantime::parse_duration(text).map_err(|error| format!("{error}; {EXPECTED}"))?;
    if age.is_zero() {
        return Err(format!("that is no age at all; {EXPECTED}, 1s at least"));
    }
    if age.subsec_nanos() != 0 {
        return Err(format!("only whole seconds are counted; {EXPECTED}"));
    }
    Ok(age)
}

/// In units whose length everybody agrees on: `1 day 12 hours`.
pub(crate) fn words(age: Duration) -> String {
    let mut seconds = age.as_secs();
    let mut words = Vec::new();
    for (unit, length) in [
        ("day", 86_400),
        ("hour", 3600),
        ("minute", 60),
        ("second", 1),
    ] {
        let count = seconds / length;
        seconds %= length;
        if count > 0 {
            words.push(super::words::count(count, unit));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_in_common_units_and_said_in_words() {
        for (text, seconds, said) in [
            ("30d", 30 * 86_400, "30 days"),
            ("12h", 12 * 3600, "12 hours"),
            ("90m", 90 * 60, "1 hour 30 minutes"),
            ("2w", 14 * 86_400, "14 days"),
            ("1d12h", 36 * 3600, "1 day 12 hours"),
            ("1d 1s", 86_401, "1 day 1 second"),
            ("1000ms", 1, "1 second"),
        ] {
            let age = parse(text).unwrap();
            assert_eq!((age.as_secs(), words(age).as_str()), (seconds, said));
        }
    }

    #[test]
    fn what_is_no_age_is_refused() {
        for (text, problem) in [
            ("0", "that is no age at all"),
            ("0d", "that is no age at all"),
            ("1500ms", "only whole seconds"),
            ("30", "time unit needed"),
            ("30 fortnights", "unknown time unit"),
            ("d", "expected number"),
            ("-1d", "expected number"),
            ("1,5d", "invalid character"),
            ("99999999999999999999d", "too large"),
            ("", "empty"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(problem) && error.contains("such as 30d"),
                "{text}: {error}"
            );
        }
    }
}
