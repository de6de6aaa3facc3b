//! The SQL of pgflow, embedded: numbered migrations and the current text of every function.
//!
//! This crate holds text only; `pgflow_runtime::migrate` applies it. The rules for the files stand
//! in its `README.md`.

#[cfg(test)]
mod file_rules;

/// A numbered file: a step from one state of the tables to the next, never edited once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Its number, counted from 1 without gaps.
    pub version: i32,
    /// Its name without number and ending.
    pub name: &'static str,
    /// Its text.
    pub sql: &'static str,
}

/// The current text of one SQL function of schema `pgflow`; its name is never overloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its name without schema.
    pub name: &'static str,
    /// One `create or replace function`, with its comments and grants.
    pub sql: &'static str,
}

/// The version of the contract between workers and SQL functions; raised when an older worker could
/// not use newer functions.
pub const PROTOCOL_VERSION: i32 = 2;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
