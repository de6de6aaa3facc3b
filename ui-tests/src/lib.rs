//! The compiler's messages about flows: `fail/` contains one case for each rule, named after it,
//! with its errors; `pass/` contains code that must compile. `tests/ui.rs` runs them.
//!
//! This library holds the types that the cases share.

use serde::{Deserialize, Serialize};

/// The input of most cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lockfile {
    /// Looked at by conditions.
    pub plan: String,
}

/// An element of the list that most first steps return.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
}

/// The output of most map steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inspection {
    /// The name of the package.
    pub name: String,
}

/// The output of most last steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report;
