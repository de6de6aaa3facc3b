//! Output that is the same but for what is new each time.

use std::sync::LazyLock;

use regex::Regex;

static NEW_EACH_TIME: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"postgres://[^\s']*", "<url>"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (
            r"\b(\d+d\d\dh|\d+h\d\dm|\d+m\d\ds|\d+(\.\d+)?s)\b",
            "<duration>",
        ),
        // The server's, and whether it has PGMQ as an extension.
        (r"(?m)^Postgres .*$", "Postgres <version>"),
        (r"(?m)^PGMQ .*$", "PGMQ <version>"),
        (r"(?m)^installed PGMQ .*$", "installed PGMQ <version>"),
        (r"applied \d+ functions", "applied <count> functions"),
        (r"\d+ seconds more at most", "<duration> more at most"),
        // The width of a column depends on what stands in it.
        (" +", " "),
        (r"(?m) $", ""),
    ]
    .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
    .into()
});

pub(super) fn is_same(one: &str, other: &str) -> bool {
    common(one) == common(other)
}

fn common(output: &str) -> String {
    NEW_EACH_TIME
        .iter()
        .fold(output.to_owned(), |text, (pattern, name)| {
            pattern.replace_all(&text, *name).into_owned()
        })
}

#[test]
fn what_is_new_each_time_makes_no_difference_and_all_else_does() {
    assert!(is_same(
        "run  0198c0de-0000-7000-8000-000000000001 2025-01-31 10:00:00Z took 1.234s",
        "run 0198c0de-0000-7000-8000-0000000000ff 2026-01-31 10:00:01Z took 1m03s",
    ));
    assert!(!is_same("1 run", "2 runs"));
    assert!(!is_same("a\nb", "a b"));
}
