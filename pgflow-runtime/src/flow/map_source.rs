//! Lists that a map step can run over when the macro does not see their element type in the source text.

use std::collections::{BTreeSet, HashSet, LinkedList, VecDeque};

/// A type that is stored as a JSON array. Where `Vec<T>` is written out the macro reads `T` from it and does not ask this trait.
#[diagnostic::on_unimplemented(
    message = "`map` needs a list, but `{Self}` is not one",
    label = "this is a `{Self}`",
    note = "return a `Vec<_>`, or use `depends_on` to take the whole value"
)]
pub trait MapSource {
    /// What one task gets.
    type Item;
}

#[diagnostic::do_not_recommend]
impl<T> MapSource for Vec<T> {
    type Item = T;
}

#[diagnostic::do_not_recommend]
impl<T> MapSource for VecDeque<T> {
    type Item = T;
}

#[diagnostic::do_not_recommend]
impl<T> MapSource for LinkedList<T> {
    type Item = T;
}

#[diagnostic::do_not_recommend]
impl<T> MapSource for BTreeSet<T> {
    type Item = T;
}

#[diagnostic::do_not_recommend]
impl<T, S> MapSource for HashSet<T, S> {
    type Item = T;
}

#[diagnostic::do_not_recommend]
impl<T> MapSource for Box<[T]> {
    type Item = T;
}

#[diagnostic::do_not_recommend]
impl<T, const N: usize> MapSource for [T; N] {
    type Item = T;
}
