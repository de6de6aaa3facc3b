//! Tables for people, and how times and durations are written in them.

use chrono::{DateTime, TimeDelta, Utc};
use comfy_table::{ContentArrangement, Table, presets};
use pgflow_runtime::printable::printable;

use crate::output::Text;

/// A table without lines, wrapped to the terminal. Its cells are escaped before they are measured
/// and wrapped.
pub(crate) struct Rows(Table);

impl Rows {
    pub(crate) fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter();
        self.0
            .add_row(cells.map(|cell| printable(cell.as_ref()).into_owned()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) fn table(header: &[&str]) -> Rows {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    // A terminal that does not know its size, as some of build services.
    if table.width() == Some(0) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    Rows(table)
}

/// The table without the spaces that pad its lines.
pub(crate) fn text(rows: &Rows) -> Text {
    rows.0
        .lines()
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect()
}

pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// A sentence of the database, with its times written as in tables.
pub(crate) fn times_in(sentence: &str) -> String {
    // 2025-01-31 10:00:00.123456+00, as Postgres writes it.
    const FORMAT: &str = "%Y-%m-%d %H:%M:%S%.f%#z";
    let mut text = String::new();
    let mut rest = sentence;
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_digit() || " :.+-".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches([' ', '.', ':']);
        let length = match DateTime::parse_from_str(word, FORMAT) {
            Ok(parsed) if first.is_ascii_digit() => {
                text.push_str(&time(parsed.to_utc()));
                word.len()
            }
            _ => {
                text.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    text
}

/// Returns the age of a time in whole seconds.
pub(crate) fn ago(time: DateTime<Utc>) -> String {
    let length = (Utc::now() - time).max(TimeDelta::zero());
    match length.num_seconds() {
        seconds @ 0..10 => format!("{seconds}s ago"),
        _ => format!("{} ago", written(length)),
    }
}

/// From start to end, or until now.
pub(crate) fn duration(start: DateTime<Utc>, end: Option<DateTime<Utc>>) -> String {
    let length = end.unwrap_or_else(Utc::now) - start;
    // The database's clock may be ahead of this one.
    written(length.max(TimeDelta::zero()))
}

fn written(length: TimeDelta) -> String {
    let seconds = length.num_seconds();
    match seconds {
        0..10 => {
            let milliseconds = length.num_milliseconds();
            format!("{}.{:03}s", milliseconds / 1000, milliseconds % 1000)
        }
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The first line, cut to a length that fits into a table.
pub(crate) fn short(text: &str, longest: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= longest && line.len() == text.len() {
        return line.to_owned();
    }
    let kept: String = line.chars().take(longest.saturating_sub(1)).collect();
    format!("{kept}\u{2026}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_two_units_at_most() {
        let cases = [
            (1_234, "1.234s"),
            (59_999, "59s"),
            (61_000, "1m01s"),
            (3_661_000, "1h01m"),
            (90_000_000, "1d01h"),
        ];
        for (milliseconds, expected) in cases {
            assert_eq!(written(TimeDelta::milliseconds(milliseconds)), expected);
        }
    }

    #[test]
    fn times_of_the_database_are_written_as_in_tables() {
        for (sentence, expected) in [
            (
                "It failed at 2025-01-31 10:00:00.123456+00, and its run with it.",
                "It failed at 2025-01-31 10:00:00Z, and its run with it.",
            ),
            ("2025-01-31 10:00:00+05:30", "2025-01-31 04:30:00Z"),
            (
                "from 2025-01-31 10:00:00-03 on",
                "from 2025-01-31 13:00:00Z on",
            ),
            (
                "delayed until 2025-01-31 10:00:00.5+00.",
                "delayed until 2025-01-31 10:00:00Z.",
            ),
            (
                "It was skipped at 2025-01-31 10:00:00+00: its condition was not met.",
                "It was skipped at 2025-01-31 10:00:00Z: its condition was not met.",
            ),
            ("31 of 2025-01-31 \u{e9}", "31 of 2025-01-31 \u{e9}"),
            ("", ""),
        ] {
            assert_eq!(times_in(sentence), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_at_characters() {
        assert_eq!(short("as it is", 8), "as it is");
        assert_eq!(short("\u{e9}\u{e9}\u{e9}\u{e9}", 3), "\u{e9}\u{e9}\u{2026}");
        assert_eq!(short("first\nsecond", 20), "first\u{2026}");
        assert_eq!(short("", 5), "");
    }
}
