//! The storage of a decoded value while a handler uses it.
//!
//! A slot belongs to the future of one attempt. A handler takes the value out of it or borrows it,
//! so a parameter taken by reference costs no copy.

use super::take::TakesItem;

/// Holds a value that is always there.
#[derive(Debug)]
pub struct Required<T>(pub(super) Option<T>);

impl<T> Required<T> {
    fn value(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => used_twice(),
        }
    }

    /// Fills an `item` parameter whose list type the macro can't see through.
    // A method, because the element's type is that of the slot then: a source that is no list is
    // not reported a second time here.
    #[doc(hidden)]
    pub fn take_item<'s, P>(&'s mut self) -> P
    where
        P: TakesItem<'s, T>,
    {
        P::take(self)
    }
}

// Apart from the type, and from `Option::expect`, which would be built for each type.
#[cold]
fn used_twice() -> ! {
    panic!("a slot is used once")
}

/// Holds the output of a step that may have been skipped.
#[derive(Debug)]
pub struct Skippable<T>(pub(super) Option<T>);

/// The types that a parameter can have for a slot.
pub trait FromSlot<'s, Slot>: Sized {
    /// Takes or borrows the value.
    fn from_slot(slot: &'s mut Slot) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Required<T>> for T {
    fn from_slot(slot: &'s mut Required<T>) -> T {
        match slot.0.take() {
            Some(value) => value,
            None => used_twice(),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Required<T>> for &'s T {
    fn from_slot(slot: &'s mut Required<T>) -> &'s T {
        slot.value()
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Required<Vec<T>>> for &'s [T] {
    fn from_slot(slot: &'s mut Required<Vec<T>>) -> &'s [T] {
        slot.value()
    }
}

#[diagnostic::do_not_recommend]
impl<'s> FromSlot<'s, Required<String>> for &'s str {
    fn from_slot(slot: &'s mut Required<String>) -> &'s str {
        slot.value()
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Skippable<T>> for Option<T> {
    fn from_slot(slot: &'s mut Skippable<T>) -> Option<T> {
        slot.0.take()
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Skippable<T>> for &'s Option<T> {
    fn from_slot(slot: &'s mut Skippable<T>) -> &'s Option<T> {
        &slot.0
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Skippable<T>> for Option<&'s T> {
    fn from_slot(slot: &'s mut Skippable<T>) -> Option<&'s T> {
        slot.0.as_ref()
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T> FromSlot<'s, Skippable<Vec<T>>> for Option<&'s [T]> {
    fn from_slot(slot: &'s mut Skippable<Vec<T>>) -> Option<&'s [T]> {
        slot.0.as_deref()
    }
}

#[diagnostic::do_not_recommend]
impl<'s> FromSlot<'s, Skippable<String>> for Option<&'s str> {
    fn from_slot(slot: &'s mut Skippable<String>) -> Option<&'s str> {
        slot.0.as_deref()
    }
}
