//! The tables.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};

use crate::{
    floor::{BATCH, CONNECTIONS},
    results::{Results, Row},
    spread::Spread,
    typescript,
};

pub(crate) fn report(results: &Results) -> String {
    let mut text = String::new();
    let mut add = |title: &str, table: Option<Table>| {
        if let Some(table) = table {
            writeln!(text, "{title}\n{table}\n").expect("a string takes everything");
        }
    };
    add(
        "What each did, as median [lowest..highest]; a task is one call of a handler",
        Some(figures(&results.rows)),
    );
    add(
        "pgflow ÷ the other, tasks a second, of medians",
        ratios(&results.rows, Row::tasks_per_second),
    );
    add(
        "pgflow ÷ the other, Postgres' processor time for a task, of medians",
        ratios(&results.rows, |row| row.per_task(|load| load.postgres_cpu)),
    );
    add(
        &format!(
            "Beside pgflow for TypeScript, by PGMQ alone ({CONNECTIONS} connections, batches of {BATCH}) on the same server; its figures are of another day"
        ),
        by_floor(results),
    );
    for note in results.notes() {
        writeln!(text, "note: {note}").expect("a string takes everything");
    }
    text
}

fn table(header: Vec<String>, text_columns: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(text_columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn figures(rows: &[Row]) -> Table {
    let header = [
        "contestant",
        "work",
        "tasks/s",
        "jobs/s",
        "Postgres ms/task",
        "client ms/task",
        "WAL KiB/task",
        "transactions/task",
        "statements/task",
    ];
    let mut table = table(header.map(str::to_owned).to_vec(), 2);
    let number = |spread: Option<Spread>, digits: usize| {
        spread.map_or("-".to_owned(), |spread| format!("{spread:.digits$}"))
    };
    // Less of interest: without its spread.
    let median = |spread: Option<Spread>, digits: usize| {
        spread.map_or("-".to_owned(), |spread| {
            format!("{:.digits$}", spread.median)
        })
    };
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    for row in rows {
        let milliseconds = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
        table.add_row(vec![
            row.entry.name.to_owned(),
            row.entry.work.to_string(),
            number(row.tasks_per_second(), 0),
            median(row.jobs_per_second(), 0),
            number(row.per_task(|load| milliseconds(load.postgres_cpu)), 3),
            median(row.per_task(|load| milliseconds(load.client_cpu)), 3),
            median(row.per_task(|load| Some(load.wal_bytes as f64 / 1024.0)), 2),
            median(row.per_task(|load| Some(load.transactions as f64)), 2),
            median(row.per_task(|load| load.statements.map(|n| n as f64)), 2),
        ]);
    }
    table
}

/// `None` when there is nothing to compare.
fn ratios(rows: &[Row], figure: fn(&Row) -> Option<Spread>) -> Option<Table> {
    let ours: Vec<&Row> = rows
        .iter()
        .filter(|ours| ours.entry.is_ours() && rows.iter().any(|row| is_peer(ours, row)))
        .collect();
    let mut header = vec![String::new()];
    header.extend(ours.iter().map(|ours| ours.entry.name.to_owned()));
    let mut table = table(header, 1);
    for peer in rows
        .iter()
        .filter(|row| ours.iter().any(|ours| is_peer(ours, row)))
    {
        let ratio = |ours: &&Row| {
            let ratio = figure(ours)?.median / figure(peer)?.median;
            is_peer(ours, peer).then(|| format!("{ratio:.2}"))
        };
        let mut line = vec![peer.entry.name.to_owned()];
        line.extend(ours.iter().map(|ours| ratio(ours).unwrap_or_default()));
        table.add_row(line);
    }
    (!ours.is_empty()).then_some(table)
}

/// Returns whether both do the same work, one for us and one against us.
fn is_peer(ours: &Row, other: &Row) -> bool {
    !other.entry.is_ours() && other.entry.work == ours.entry.work
}

fn by_floor(results: &Results) -> Option<Table> {
    let here = results.floor()?;
    let there = typescript::FLOOR;
    let header = [
        "",
        "TypeScript",
        "of its floor",
        "pgflow",
        "of the floor here",
        "ours ÷ theirs, by floor",
    ];
    let mut table = table(header.map(str::to_owned).to_vec(), 1);
    for (what, there, here) in [
        ("PGMQ: messages sent/s", there.send, here.send),
        (
            "PGMQ: messages read and deleted/s",
            there.read_delete,
            here.read_delete,
        ),
        (
            "the floor, both in turn: messages/s",
            there.both(),
            here.both(),
        ),
    ] {
        table.add_row(vec![
            what.to_owned(),
            format!("{there:.0}"),
            String::new(),
            format!("{here:.0}"),
        ]);
    }
    let ours = results.rows.iter().filter(|row| row.entry.is_ours());
    for row in ours {
        let theirs = typescript::TASKS_PER_SECOND
            .iter()
            .find(|(work, _)| *work == row.entry.work);
        let (Some((_, theirs)), Some(ours)) = (theirs, row.tasks_per_second()) else {
            continue;
        };
        let (of_theirs, of_ours) = (theirs / there.both(), ours.median / here.both());
        table.add_row(vec![
            format!("{}: tasks/s", row.entry.name),
            format!("{theirs:.0}"),
            format!("{:.1} %", of_theirs * 100.0),
            format!("{:.0}", ours.median),
            format!("{:.1} %", of_ours * 100.0),
            format!("{:.1}", of_ours / of_theirs),
        ]);
    }
    Some(table)
}
