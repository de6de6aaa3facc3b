//! Numbers and lists in sentences.

/// `1 run`, `2 runs`.
pub(crate) fn count(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The counts that are not 0: `1 started, 2 failed`.
pub(crate) fn counts<const N: usize>(counts: [(i64, &str); N]) -> String {
    let present = counts.into_iter().filter(|(count, _)| *count != 0);
    let parts: Vec<String> = present
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    parts.join(", ")
}
