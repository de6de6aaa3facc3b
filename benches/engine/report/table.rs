//! Tables of text.

use super::{Group, spread::three_digits};

/// A row for each group.
pub(super) fn of(groups: &[&Group<'_>]) -> String {
    let variants: Vec<_> = groups.iter().filter_map(|g| g.first().variant).collect();
    let several = |differs: fn(&crate::variant::Variant, &crate::variant::Variant) -> bool| {
        variants.iter().any(|v| differs(v, &variants[0]))
    };
    let events = several(|a, b| a.events != b.events);
    let history = several(|a, b| a.history != b.history);
    let what = groups.iter().any(|g| !g.first().what.is_empty());

    let first = groups[0].first();
    let mut header = vec!["scenario".to_owned()];
    header.extend(what.then(String::new));
    header.extend((!variants.is_empty()).then(|| "mode".to_owned()));
    header.extend(events.then(|| "events".to_owned()));
    header.extend(history.then(|| "history".to_owned()));
    header.extend(first.counts.iter().map(|(name, _)| (*name).to_owned()));
    header.extend(first.figures.iter().map(|figure| figure.name.clone()));
    let mut rows = vec![header];
    for group in groups {
        let record = group.first();
        let mut row = vec![record.scenario.clone()];
        row.extend(what.then(|| record.what.clone()));
        if let Some(variant) = record.variant {
            row.push(variant.mode.name().to_owned());
            row.extend(events.then(|| variant.events.name().to_owned()));
            row.extend(history.then(|| variant.history.to_string()));
        }
        row.extend(record.counts.iter().map(|(_, count)| count.to_string()));
        row.extend((0..record.figures.len()).map(|figure| cell(group, figure)));
        rows.push(row);
    }
    aligned(&rows)
}

fn cell(group: &Group<'_>, figure: usize) -> String {
    let Some(spread) = group.spread(figure) else {
        return "-".to_owned();
    };
    let median = three_digits(spread.median);
    if group.first().figures[figure].main && group.0.len() > 1 {
        let (min, max) = (three_digits(spread.min), three_digits(spread.max));
        return format!("{median} [{min}..{max}]");
    }
    median
}

/// Columns side by side: words to the left, numbers to the right.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
    let layout: Vec<(usize, bool)> = (0..columns)
        .map(|column| {
            let cells: Vec<String> = rows.iter().map(|row| cell(row, column)).collect();
            let width = cells.iter().map(|c| c.chars().count()).max().unwrap_or(0);
            let is_number = |c: &String| {
                c.is_empty() || c == "-" || c.starts_with(|first: char| first.is_ascii_digit())
            };
            (width, cells.iter().skip(1).all(is_number))
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, &(width, right)) in layout.iter().enumerate() {
            let cell = cell(row, column);
            let gap = if column == 0 { "" } else { "  " };
            line += gap;
            let pad = " ".repeat(width - cell.chars().count());
            let (before, after) = if right { (&*pad, "") } else { ("", &*pad) };
            line += before;
            line += &cell;
            line += after;
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
