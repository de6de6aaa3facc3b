//! Lists that a map step can run over when the macro does not see their element type in the source
//! text.

use std::collections::{BTreeSet, HashSet, LinkedList, VecDeque};

/// A type that is stored as a JSON array. Where `Vec<T>` is written out the macro reads `T` from it
/// and does not ask this trait.
#[diagnostic::on_unimplemented(
    message = "`map` needs a list, but `{Self}` is not one",
    label = "this is a `{Self}`",
    note = "return a `Vec<_>`, or use `depends_on` to take the whole value"
)]
pub trait MapSource {
    /// The input of one task.
    type Item;
}

/// The same for `map = input`, which has another remedy.
#[diagnostic::on_unimplemented(
    message = "`map = input` needs an input that is a list, but `{Self}` is not one",
    label = "the flow's input is a `{Self}`",
    note = "declare the flow with a list, as in `input = Vec<_>`, or let a step return the list and map over that step"
)]
pub trait MapInput {
    /// The input of one task.
    type Item;
}

// Both for each list: over a blanket implementation, rustc would speak of the trait that it asks
// for.
macro_rules! lists {
    ($([$($parameters:tt)*] $list:ty;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<T, $($parameters)*> MapSource for $list {
                type Item = T;
            }

            #[diagnostic::do_not_recommend]
            impl<T, $($parameters)*> MapInput for $list {
                type Item = T;
            }
        )*
    };
}

lists! {
    [] Vec<T>;
    [] VecDeque<T>;
    [] LinkedList<T>;
    [] BTreeSet<T>;
    [S] HashSet<T, S>;
    [] Box<[T]>;
    [const N: usize] [T; N];
}
