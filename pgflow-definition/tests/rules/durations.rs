//! Durations as text.

use pgflow_definition::duration::{DurationProblem, meant, parse_duration, write_duration};
use proptest::prelude::*;

#[test]
fn numbers_with_units_add_up() {
    let cases = [
        ("30s", 30),
        ("5m", 300),
        ("2h", 7_200),
        ("1d", 86_400),
        ("1h30m", 5_400),
        ("1d2h3m4s", 93_784),
        (" 1h 30 m ", 5_400),
        ("0s", 0),
        ("007s", 7),
        ("2147483647s", 2_147_483_647),
    ];
    for (text, seconds) in cases {
        assert_eq!(parse_duration(text), Ok(seconds), "{text:?}");
    }
}

#[test]
fn each_fault_is_explained() {
    const EXAMPLE: &str = "write for example \"30s\", \"5m\" or \"1h30m\"";
    const FORM: &str = "a duration is made of whole numbers, each with a unit";
    let cases = [
        (" ", format!("there is nothing in it; {FORM}; {EXAMPLE}")),
        (
            "soon",
            format!("`soon` does not start with a digit; {FORM}; {EXAMPLE}"),
        ),
        (
            "1h-5s",
            format!("`-5s` does not start with a digit; {FORM}; {EXAMPLE}"),
        ),
        (
            "30",
            format!("`30` has no unit; {FORM}; write for example \"30s\" or \"30m\""),
        ),
        (
            "1.5h",
            format!(
                "`1.5h` is a fraction; {FORM}; write for example \"1h30m\" instead of \"1.5h\""
            ),
        ),
        (
            "3parsecs",
            format!("`parsecs` is not a unit; the units are d, h, m and s; {EXAMPLE}"),
        ),
        (
            "5M",
            format!("`M` is not a unit; the units are d, h, m and s; {EXAMPLE}"),
        ),
        (
            "500ms",
            format!(
                "the unit `ms` is less than a second; Postgres keeps whole seconds, and the units \
                 are d, h, m and s; {EXAMPLE}"
            ),
        ),
        (
            "30m1h",
            format!(
                "the unit `h` comes too late; each unit stands once, the longest first; {EXAMPLE}"
            ),
        ),
        (
            "1m1m",
            format!(
                "the unit `m` comes too late; each unit stands once, the longest first; {EXAMPLE}"
            ),
        ),
        (
            "2147483648s",
            "it is too long; the most is 2147483647 seconds, about 68 years; write a shorter one"
                .into(),
        ),
    ];
    for (text, explanation) in cases {
        assert_eq!(
            parse_duration(text).unwrap_err().to_string(),
            explanation,
            "{text:?}"
        );
    }
}

#[test]
fn other_ways_to_write_a_duration_are_understood() {
    for (text, seconds) in [
        ("500ms", Some(1)),
        ("1500 ms", Some(2)),
        ("1.5h", Some(5_400)),
        ("00:05:00", Some(300)),
        ("5:30", Some(330)),
        ("30 seconds", Some(30)),
        ("1 hour, 30 minutes", Some(5_400)),
        ("2w", Some(1_209_600)),
        ("30m1h", Some(5_400)),
        ("0.1ns", Some(1)),
        ("30", None),
        ("", None),
        ("soon", None),
        ("-5s", None),
        ("5 parsecs", None),
        ("1:2:3:4", None),
        ("99999999999999999999s", None),
        ("1.2.3s", None),
    ] {
        assert_eq!(meant(text), seconds, "{text:?}");
    }
}

#[test]
fn nothing_overflows() {
    for text in [
        "99999999999999999999s",
        "4294967295d",
        "24855d4h",
        "24855d3h14m8s",
    ] {
        assert_eq!(
            parse_duration(text),
            Err(DurationProblem::TooLong),
            "{text:?}"
        );
    }
    assert_eq!(parse_duration("24855d3h14m7s"), Ok(2_147_483_647));
}

proptest! {
    #[test]
    fn any_text_is_read_or_explained(text in prop_oneof!["[0-9dhms. ]{0,12}", any::<String>()]) {
        if let Err(problem) = parse_duration(&text) {
            prop_assert!(problem.to_string().contains("; "));
        }
    }

    #[test]
    fn a_proposal_is_read_as_what_was_meant(seconds in 0..=2_147_483_647_u32) {
        let text = write_duration(seconds);
        prop_assert_eq!(parse_duration(&text), Ok(seconds));
        prop_assert_eq!(meant(&text), Some(seconds));
    }

    #[test]
    fn what_is_written_is_what_is_read(
        (d, h, m, s) in (0..1_000_u32, 0..24_u32, 0..60_u32, 0..60_u32),
    ) {
        let seconds = ((d * 24 + h) * 60 + m) * 60 + s;
        prop_assert_eq!(parse_duration(&format!("{d}d{h}h{m}m{s}s")), Ok(seconds));
    }
}
