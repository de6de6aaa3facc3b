//! The element that a task of a map step gets.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::Type;

use super::{codec, value};
use crate::model::{Flow, MapOver, Step, types::vec_element};

/// The known facts about the elements.
pub(super) enum Element<'m> {
    /// Their type is written down.
    Known(Known<'m>),
    /// Only the type checker knows it: the list's type for items of ours, and where it was named as
    /// the source.
    Projected {
        list: TokenStream,
        at: Span,
        /// The function that gets an element of a task; its bound says that there is a list.
        get: &'static str,
    },
}

pub(super) struct Known<'m> {
    /// An `Option` of it, where an element may have failed, has no written type.
    pub(super) ty: Option<&'m Type>,
    /// The same for items of ours.
    pub(super) value: TokenStream,
    pub(super) codec: TokenStream,
    /// The step that returns the list, if it is not the flow's input.
    pub(super) source: Option<&'m Step<'m>>,
    /// The list's type where it is written, and a place on its line that no editor looks anything
    /// up at.
    pub(super) list: TokenStream,
    pub(super) beside_list: Span,
}

/// `None` when the source is missing or has no type; that is reported elsewhere.
pub(super) fn of_step<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> Option<Element<'m>> {
    match step.map? {
        MapOver::Nothing => None,
        MapOver::Input(at) => of_input(flow, at),
        MapOver::Step(source, at) => of_output(&flow.steps[source], at),
    }
}

fn of_input<'m>(flow: &'m Flow<'_>, at: Span) -> Option<Element<'m>> {
    let list = flow.input.as_ref()?;
    Some(match vec_element(list) {
        Some(ty) => Element::Known(Known {
            ty: Some(ty),
            value: value::input_element(flow),
            codec: codec::of_input_element(flow),
            source: None,
            list: list.to_token_stream(),
            beside_list: flow.args.input_equals.unwrap_or_else(Span::call_site),
        }),
        None => Element::Projected {
            list: value::input(flow),
            at,
            get: "item_of_input",
        },
    })
}

fn of_output<'m>(source: &'m Step<'_>, at: Span) -> Option<Element<'m>> {
    let output = source.output.as_ref().ok()?;
    let ty = match source.map {
        Some(_) => Some(&output.ok),
        None => vec_element(&output.ok),
    };
    Some(match ty {
        Some(ty) => Element::Known(Known {
            ty: (!source.is_tolerant()).then_some(ty),
            value: value::element_name(source).into_token_stream(),
            codec: codec::of_element(source),
            source: Some(source),
            list: output.ok.to_token_stream(),
            beside_list: output.arrow,
        }),
        None => Element::Projected {
            list: value::output_name(source).into_token_stream(),
            at,
            get: "item_of",
        },
    })
}
