//! The width of prose in Markdown. Code blocks and tables may be wider, and so may a line that
//! can't be broken.

use super::{Fault, assert_none, files, is_too_wide};

const TOO_WIDE: &str = "prose wraps at 100 columns: break this line at an earlier word";

fn faults(page: &str) -> Vec<Fault> {
    let mut is_code = false;
    let mut faults = Vec::new();
    for (index, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let is_free = is_code || line.starts_with('|') || !line.trim().contains(' ');
        if !is_free && is_too_wide(line) {
            faults.push(Fault {
                line: index + 1,
                rule: TOO_WIDE,
            });
        }
    }
    faults
}

#[test]
fn prose_wraps_at_100_columns() {
    let pages = files("md");
    assert!(pages.len() > 15, "{} pages", pages.len());
    assert_none(&pages, faults);
}

#[test]
fn a_wide_line_of_prose_is_found() {
    let wide = "word ".repeat(21);
    let unbreakable = "x".repeat(120);
    let page = format!("{wide}\n\n```\n{wide}\n```\n| {wide} |\n{unbreakable}\n- {wide}");
    let lines: Vec<usize> = faults(&page).iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 8]);
}
