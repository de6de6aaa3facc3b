//! The names by which a step mentions other steps.

use proc_macro2::{Ident, Span, TokenStream};

/// A mention of a step, in `depends_on` or `map`.
pub(crate) struct Edge {
    /// The function's name where it was written.
    pub(crate) at: Ident,
    /// The text that was written in place of that name.
    pub(crate) written: Option<TokenStream>,
    pub(crate) link: Link,
    /// For a name that leads to no step of use: a step that only a parameter names, and which is
    /// read in its place.
    pub(crate) taken: Option<usize>,
}

/// The target of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Step(usize),
    /// The step that the name stands in.
    Itself(usize),
    /// There is no such step, but one with a similar name. Parameters are read as if it had been
    /// written; the graph goes without.
    Unknown {
        similar: Option<usize>,
    },
    /// A function of the `impl` without `#[step]`.
    NotAStep,
    /// A constant of the `impl`.
    Constant,
    /// The path of something outside of the flow.
    Outside,
    /// A step whose signature can't be read; rustc reports that.
    Unreadable,
}

impl Edge {
    /// The step that the name leads to.
    pub(crate) fn step(&self) -> Option<usize> {
        match self.link {
            Link::Step(step) | Link::Itself(step) => Some(step),
            Link::Unknown { .. }
            | Link::NotAStep
            | Link::Constant
            | Link::Outside
            | Link::Unreadable => None,
        }
    }

    /// The step that was meant and makes sense.
    pub(crate) fn meant(&self) -> Option<usize> {
        if self.taken.is_some() {
            return self.taken;
        }
        match self.link {
            Link::Step(step) => Some(step),
            Link::Unknown { similar } => similar,
            Link::Itself(_)
            | Link::NotAStep
            | Link::Constant
            | Link::Outside
            | Link::Unreadable => None,
        }
    }
}

/// The source of a map step; the place is that of the name.
#[derive(Clone, Copy)]
pub(crate) enum MapOver {
    Input(Span),
    Step(usize, Span),
    /// A name that leads nowhere.
    Nothing,
}
