//! Ages and other durations, such as `30d`: parsing, and formatting for people.

use std::time::Duration;

const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Reads an age of at least one second, in whole seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected numbers with units, such as 30d, 12h, 90m, 2w or 1d12h";
    let age = read(text, "d", EXPECTED)?;
    if age.is_zero() {
        return Err(format!("that is no age at all; {EXPECTED}, 1s at least"));
    }
    if age.subsec_nanos() != 0 {
        return Err(format!("only whole seconds are counted; {EXPECTED}"));
    }
    Ok(age)
}

/// Reads how long to wait at most; nothing is a length too.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    read(
        text,
        "s",
        "expected numbers with units, such as 60s, 5m or 1h30m; 0s looks once",
    )
}

/// Reads an option of a flow, in whole seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<u32, String> {
    const EXPECTED: &str = "expected whole seconds with units, such as 30s, 5m or 1h30m";
    let length = read(text, "s", EXPECTED)?;
    if length.subsec_nanos() != 0 {
        return Err(format!("only whole seconds are counted; {EXPECTED}"));
    }
    i32::try_from(length.as_secs())
        .map(i32::unsigned_abs)
        .map_err(|_| format!("that is too long; {EXPECTED}, 68 years at most"))
}

/// Reads the pause between two looks.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected 100ms or more, such as 500ms, 1s or 1m";
    let interval = read(text, "s", EXPECTED)?;
    if interval < SHORTEST_INTERVAL {
        return Err(format!("that is too short; {EXPECTED}"));
    }
    Ok(interval)
}

fn read(text: &str, usual_unit: &str, expected: &str) -> Result<Duration, String> {
    let number = text.trim();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && number.bytes().any(|byte| byte != b'0') {
        return Err(format!(
            "it has no unit: did you mean {number}{usual_unit}? {expected}"
        ));
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; {expected}"))
}

/// In units whose length everybody agrees on: `1 day 12 hours`.
pub(crate) fn words(age: Duration) -> String {
    let words: Vec<String> = units(age.as_secs())
        .map(|(count, unit)| super::words::count(count, unit))
        .collect();
    words.join(" ")
}

/// Seconds as options count them, exactly, and as they are written in code: `1h30m`.
pub(crate) fn short(seconds: i32) -> String {
    let parts: Vec<String> = units(u64::try_from(seconds).unwrap_or_default())
        .map(|(count, unit)| format!("{count}{}", &unit[..1]))
        .collect();
    if parts.is_empty() {
        return format!("{seconds}s");
    }
    parts.concat()
}

/// Returns the number of each unit that occurs, the longest first.
fn units(mut seconds: u64) -> impl Iterator<Item = (u64, &'static str)> {
    [
        ("day", 86_400),
        ("hour", 3600),
        ("minute", 60),
        ("second", 1),
    ]
    .into_iter()
    .filter_map(move |(unit, length)| {
        let count = seconds / length;
        seconds %= length;
        (count > 0).then_some((count, unit))
    })
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
    fn options_are_written_exactly_with_the_units_of_code() {
        for (seconds, written) in [
            (0, "0s"),
            (5, "5s"),
            (60, "1m"),
            (5400, "1h30m"),
            (86_401, "1d1s"),
        ] {
            assert_eq!(short(seconds), written);
        }
    }

    #[test]
    fn what_is_no_age_is_refused() {
        for (text, problem) in [
            ("0", "that is no age at all"),
            ("0d", "that is no age at all"),
            ("1500ms", "only whole seconds"),
            ("5", "it has no unit: did you mean 5d?"),
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

    #[test]
    fn a_timeout_may_be_nothing_and_an_interval_may_not() {
        assert_eq!(parse_timeout("0s").unwrap(), Duration::ZERO);
        assert_eq!(parse_timeout("1m 30s").unwrap(), Duration::from_secs(90));
        assert!(
            parse_timeout("60")
                .unwrap_err()
                .contains("did you mean 60s?")
        );
        assert_eq!(parse_interval("100ms").unwrap(), Duration::from_millis(100));
        for (text, problem) in [("0s", "too short"), ("99ms", "too short"), ("2", "2s?")] {
            let error = parse_interval(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
