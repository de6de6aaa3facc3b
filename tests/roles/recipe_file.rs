//! The blocks of SQL of `docs/roles.md`.

use std::path::Path;

/// The blocks, in the order of the page.
pub(super) struct Recipe {
    pub(super) groups: String,
    pub(super) grants: String,
    pub(super) worker: String,
    pub(super) reader: String,
    pub(super) application: String,
}

impl Recipe {
    pub(super) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/roles.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        let blocks: Vec<&str> = page
            .split("```sql\n")
            .skip(1)
            .map(|rest| rest.split("```").next().expect("a block ends"))
            .collect();
        let [groups, grants, members, application] = blocks[..] else {
            panic!("the page has {} blocks of SQL", blocks.len());
        };
        let (worker, reader) = members
            .split_once("create role orders_reader")
            .expect("the members' block makes a worker, then a reader");
        Self {
            groups: groups.to_owned(),
            grants: grants.to_owned(),
            worker: worker.to_owned(),
            reader: format!("create role orders_reader{reader}"),
            // The page has a role that may create roles do this, and the owner the block.
            application: format!("create role orders_app login;\n{application}"),
        }
    }

    /// The functions that the grants open to a group, sorted.
    pub(super) fn functions_of(&self, group: &str) -> Vec<&str> {
        let grant = self
            .grants
            .split("grant execute on function")
            .skip(1)
            .find(|grant| grant.contains(&format!("\nto {group};")))
            .expect("the group gets functions");
        let list = grant.split("\nto ").next().expect("a list");
        let mut functions: Vec<&str> = list
            .lines()
            .filter_map(|line| line.trim().strip_prefix("pgflow."))
            .map(|name| name.trim_end_matches(','))
            .collect();
        functions.sort_unstable();
        functions
    }
}
