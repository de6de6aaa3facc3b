//! The futures of a handler, which threads hand over to each other.

use std::{future::Future, marker::PhantomData};

use super::{
    BoxFuture, SharedState,
    finish::poison,
    stored::{Codec, Stored, codec},
};

/// Boxes the futures of a handler that holds the state `S` and values of the types `V`, a list of
/// pairs: `(A, (B, ()))`.
///
/// A type that threads can't share is one error, where it is declared. The future of each handler
/// that holds it is no error more: the functions stand under the condition that all types can be
/// shared, and where one can't, rustc continues to [`Unshared`].
#[derive(Debug)]
pub struct Run<S, V>(PhantomData<(S, V)>);

impl<S: SharedState, V: AllStored> Run<S, V> {
    /// The whole of the handler.
    pub fn handler<'a, F>(future: F) -> BoxFuture<'a, F::Output>
    where
        F: Future + Send + 'a,
    {
        Box::pin(future)
    }

    /// The user's function in it: the one place where that must be `Send`.
    pub fn step<'a, F>(future: F) -> BoxFuture<'a, F::Output>
    where
        F: Future + Send + 'a,
    {
        Box::pin(future)
    }
}

/// The fallback of those functions for types that can't be shared; such a program does not compile.
pub trait Unshared {
    /// Asks nothing of the handler.
    fn handler<'a, F: Future + 'a>(_: F) -> BoxFuture<'a, F::Output> {
        poison()
    }

    /// Asks nothing of the user's function.
    fn step<'a, F: Future + 'a>(_: F) -> BoxFuture<'a, F::Output> {
        poison()
    }
}

impl<S, V> Unshared for Run<S, V> {}

/// A list of types that can be stored.
pub trait AllStored {}

impl AllStored for () {}

impl<T: Stored, Rest: AllStored> AllStored for (T, Rest) {}

/// A type of which something else asks that it can be stored: an element of the flow's input.
#[derive(Debug)]
pub struct CheckedElsewhere<T>(PhantomData<T>);

impl<T: Stored> CheckedElsewhere<T> {
    /// Its codec.
    pub const fn codec() -> Codec<T> {
        codec()
    }
}

impl<T> Unstored<T> for CheckedElsewhere<T> {}

/// The fallback for types that can't be stored; such a program does not compile.
pub trait Unstored<T> {
    /// No codec.
    fn codec() -> Codec<T> {
        poison()
    }
}
