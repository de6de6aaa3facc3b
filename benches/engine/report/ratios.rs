//! Comparisons within one run, the only ones that count.

use super::{Group, spread::three_digits};

/// A table of each group against those that differ from it in one thing, one thing after the other;
/// no rows when there are none.
pub(super) fn of(groups: &[&Group<'_>]) -> Vec<Vec<String>> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (n, group) in groups.iter().enumerate() {
        // The dimensions in which it was compared already: what was named first is the base of all
        // others.
        let mut compared: Vec<String> = Vec::new();
        for base in &groups[..n] {
            let Some((difference, shared)) = difference(group, base) else {
                continue;
            };
            let dimension = difference.split(' ').next().unwrap_or_default().to_owned();
            if compared.contains(&dimension) {
                continue;
            }
            compared.push(dimension.clone());
            rows.push((dimension, row(group, base, difference, shared)));
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    // Stable: within a thing the order of the groups stays.
    rows.sort_by(|(one, _), (other, _)| other.cmp(one));
    let rows = rows.into_iter().map(|(_, row)| row);
    [header(groups[0])].into_iter().chain(rows).collect()
}

fn difference(group: &Group<'_>, base: &Group<'_>) -> Option<(String, String)> {
    let (group, base) = (group.first(), base.first());
    if (&group.scenario, &group.what) != (&base.scenario, &base.what) {
        return None;
    }
    group.variant?.against(&base.variant?)
}

fn header(group: &Group<'_>) -> Vec<String> {
    let mut header = ["scenario", "ratio", "with"].map(str::to_owned).to_vec();
    let main = group.first().figures.iter().filter(|figure| figure.main);
    header.extend(main.map(|figure| figure.name.clone()));
    header
}

fn row(group: &Group<'_>, base: &Group<'_>, difference: String, shared: String) -> Vec<String> {
    let record = group.first();
    let name = format!("{} {}", record.scenario, record.what);
    let mut row = vec![name.trim().to_owned(), difference, shared];
    for (n, figure) in record.figures.iter().enumerate() {
        if figure.main {
            let ratio = group
                .spread(n)
                .zip(base.spread(n))
                .map(|(group, base)| group.median / base.median);
            row.push(ratio.map_or("-".to_owned(), three_digits));
        }
    }
    row
}
