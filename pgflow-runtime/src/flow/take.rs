//! The way from a slot to a parameter, with a separate error text for each type that does not fit.
//!
//! Every function has the parameter's type first and is called with it as a generic argument, so
//! that rustc underlines exactly that type.

use super::{
    run_end::RunEnd,
    slot::{FromSlot, Required},
};
use crate::context::StepContext;

/// The types of an `input` parameter.
#[diagnostic::on_unimplemented(
    message = "the flow's input is `{In}`, but this parameter takes `{Self}`",
    label = "expected `{In}` or `&{In}`"
)]
pub trait TakesInput<'s, In>: Sized {
    /// Fills the parameter.
    fn take(slot: &'s mut Required<In>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, In, P: FromSlot<'s, Required<In>>> TakesInput<'s, In> for P {
    fn take(slot: &'s mut Required<In>) -> P {
        P::from_slot(slot)
    }
}

/// Fills an `input` parameter.
pub fn input<'s, P, In>(slot: &'s mut Required<In>) -> P
where
    P: TakesInput<'s, In>,
{
    P::take(slot)
}

/// The same for an input that is written `Vec<E>`.
#[diagnostic::on_unimplemented(
    message = "the flow's input is `{In}`, but this parameter takes `{Self}`",
    label = "expected `{In}`, `&{In}` or `&[{E}]`"
)]
pub trait TakesListInput<'s, In, E>: Sized {
    /// Fills the parameter.
    fn take(slot: &'s mut Required<In>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, In, E, P: FromSlot<'s, Required<In>>> TakesListInput<'s, In, E> for P {
    fn take(slot: &'s mut Required<In>) -> P {
        P::from_slot(slot)
    }
}

/// Fills an `input` parameter from a list of `E`.
pub fn list_input<'s, P, In, E>(slot: &'s mut Required<In>) -> P
where
    P: TakesListInput<'s, In, E>,
{
    P::take(slot)
}

/// The same for an input that is written `String`.
#[diagnostic::on_unimplemented(
    message = "the flow's input is `{In}`, but this parameter takes `{Self}`",
    label = "expected `{In}`, `&{In}` or `&str`"
)]
pub trait TakesTextInput<'s, In>: Sized {
    /// Fills the parameter.
    fn take(slot: &'s mut Required<In>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, In, P: FromSlot<'s, Required<In>>> TakesTextInput<'s, In> for P {
    fn take(slot: &'s mut Required<In>) -> P {
        P::from_slot(slot)
    }
}

/// Fills an `input` parameter from a text.
pub fn text_input<'s, P, In>(slot: &'s mut Required<In>) -> P
where
    P: TakesTextInput<'s, In>,
{
    P::take(slot)
}

/// The types of an `item` parameter whose list type the macro can't see through.
#[diagnostic::on_unimplemented(
    message = "this map step gets one `{Item}` at a time, but its `item` parameter takes `{Self}`",
    label = "expected `{Item}` or `&{Item}`"
)]
pub trait TakesItem<'s, Item>: Sized {
    /// Fills the parameter.
    fn take(slot: &'s mut Required<Item>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s, Item, P: FromSlot<'s, Required<Item>>> TakesItem<'s, Item> for P {
    fn take(slot: &'s mut Required<Item>) -> P {
        P::from_slot(slot)
    }
}

/// The types of a `ctx` parameter.
#[diagnostic::on_unimplemented(
    message = "a `ctx` parameter takes `&StepContext`, not `{Self}`",
    label = "expected `&StepContext` or `StepContext`"
)]
pub trait TakesCtx<'a>: Sized {
    /// Fills the parameter.
    fn take(ctx: &'a StepContext) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'a> TakesCtx<'a> for &'a StepContext {
    fn take(ctx: &'a StepContext) -> Self {
        ctx
    }
}

#[diagnostic::do_not_recommend]
impl<'a> TakesCtx<'a> for StepContext {
    fn take(ctx: &'a StepContext) -> Self {
        ctx.clone()
    }
}

/// Fills a `ctx` parameter.
pub fn ctx<'a, P: TakesCtx<'a>>(ctx: &'a StepContext) -> P {
    P::take(ctx)
}

/// The types of an `end` parameter.
#[diagnostic::on_unimplemented(
    message = "an `end` parameter takes `&RunEnd`, not `{Self}`",
    label = "expected `&RunEnd` or `RunEnd`"
)]
pub trait TakesEnd<'s>: Sized {
    /// Fills the parameter.
    fn take(slot: &'s mut Required<RunEnd>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'s> TakesEnd<'s> for &'s RunEnd {
    fn take(slot: &'s mut Required<RunEnd>) -> Self {
        Self::from_slot(slot)
    }
}

#[diagnostic::do_not_recommend]
impl<'s> TakesEnd<'s> for RunEnd {
    fn take(slot: &'s mut Required<RunEnd>) -> Self {
        Self::from_slot(slot)
    }
}

/// Fills an `end` parameter.
pub fn end<'s, P: TakesEnd<'s>>(slot: &'s mut Required<RunEnd>) -> P {
    P::take(slot)
}

/// The types of a `state` parameter taken by reference.
#[diagnostic::on_unimplemented(
    message = "the flow's state is `{S}`, but this parameter takes `{Self}`",
    label = "expected `&{S}`"
)]
pub trait TakesState<'a, S>: Sized {
    /// Fills the parameter.
    fn take(state: &'a S) -> Self;
}

#[diagnostic::do_not_recommend]
impl<'a, S> TakesState<'a, S> for &'a S {
    fn take(state: &'a S) -> Self {
        state
    }
}

/// Fills a `state` parameter taken by reference.
pub fn state<'a, P, S>(state: &'a S) -> P
where
    P: TakesState<'a, S>,
{
    P::take(state)
}

/// The types of a `state` parameter taken by value.
#[diagnostic::on_unimplemented(
    message = "tasks share the flow's state, which is `{S}`, but this parameter takes `{Self}` by value",
    label = "take the state by reference: `&{S}`",
    note = "by value is possible where `{S}` is `Clone`: each attempt then gets a clone"
)]
pub trait TakesStateByValue<S>: Sized {
    /// Fills the parameter.
    fn take(state: &S) -> Self;
}

#[diagnostic::do_not_recommend]
impl<S: Clone> TakesStateByValue<S> for S {
    fn take(state: &S) -> Self {
        state.clone()
    }
}

/// Fills a `state` parameter taken by value.
pub fn state_by_value<P, S>(state: &S) -> P
where
    P: TakesStateByValue<S>,
{
    P::take(state)
}
