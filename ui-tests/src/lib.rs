//! What the compiler says about flows: `fail/` holds one case for each rule, named after it, with the errors that it gives;
//! `pass/` holds what must compile. `tests/ui.rs` runs them.
//!
//! This library holds the types that the cases share.

use serde::{Deserialize, Serialize};

/// The input of most cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lockfile {
    /// Looked at by conditions.
    pub plan: String,
}

/// What most first steps return a list of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
}

/// What most map steps return.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inspection {
    /// The name of the package.
    pub name: String,
}

/// What most last steps return.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report;
