//! The embedded files, and which of them a migrator applies.

use pgflow_migrations::{Function, Migration};
use sha2::{Digest, Sha256};

/// Every file that the code knows, and the level that a migrator aims at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) migrations: &'static [Migration],
    pub(super) functions: &'static [Function],
    /// Stops here; absent means everything.
    pub(super) level: Option<i32>,
}

impl Source {
    pub(super) const EMBEDDED: Self = Self {
        migrations: pgflow_migrations::MIGRATIONS,
        functions: pgflow_migrations::FUNCTIONS,
        level: None,
    };

    /// The newest migration that the code knows; 0 without any.
    pub(super) fn latest(&self) -> i32 {
        self.migrations.last().map_or(0, |newest| newest.version)
    }

    /// The migrations up to the level.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &'static Migration> {
        let level = self.level.unwrap_or(i32::MAX);
        self.migrations
            .iter()
            .filter(move |migration| migration.version <= level)
    }

    /// The functions fit the latest tables only.
    pub(super) fn wanted_functions(&self) -> Option<&'static [Function]> {
        self.level
            .is_none_or(|level| level >= self.latest())
            .then_some(self.functions)
    }
}

/// SHA-256 of a file's text, in hexadecimal.
pub(super) fn digest(sql: &str) -> String {
    use std::fmt::Write as _;

    Sha256::digest(sql)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha256_in_hexadecimal() {
        assert_eq!(
            digest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
