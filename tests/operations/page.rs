//! The blocks of SQL of a page of `docs`.

use std::path::Path;

#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The heading that it stands under.
    pub(super) heading: String,
    pub(super) sql: String,
}

impl Block {
    pub(super) fn says(&self, what: &str) -> bool {
        self.sql.contains(what)
    }
}

/// The blocks of the page, in its order.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(page);
    let text = std::fs::read_to_string(path).expect("the page is there");
    let mut blocks = Vec::new();
    let mut heading = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            line.trim_start_matches(['#', ' ']).clone_into(&mut heading);
        }
        // Indented in a list, or not.
        let Some(fence) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let body: Vec<&str> = lines
            .by_ref()
            .take_while(|line| line.trim_start() != "```")
            .collect();
        if fence == "sql" {
            blocks.push(Block {
                heading: heading.clone(),
                sql: body.join("\n"),
            });
        }
    }
    blocks
}

/// The one block that says this.
pub(super) fn the<'a>(blocks: &'a [Block], what: &str) -> &'a Block {
    let mut found = blocks.iter().filter(|block| block.says(what));
    match (found.next(), found.next()) {
        (Some(block), None) => block,
        (None, _) => panic!("no block says {what:?}"),
        (Some(_), Some(_)) => panic!("several blocks say {what:?}"),
    }
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let read = |page: &str| {
        let path = docs.join(page);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let mut seen = 0;
    for page in ["operations.md", "rollout.md"] {
        let text = read(page);
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if link.starts_with("http") {
                continue;
            }
            seen += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                text.clone()
            } else {
                read(file)
            };
            let is_heading = |line: &str| line.starts_with('#') && anchor_of(line) == anchor;
            assert!(
                anchor.is_empty() || target.lines().any(is_heading),
                "{page}: {link}"
            );
        }
    }
    assert!(seen > 5, "{seen} links");
}

/// As GitHub makes it.
fn anchor_of(heading: &str) -> String {
    let words = heading.trim_start_matches(['#', ' ']).to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
