//! The element that a task of a map step gets.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Type;

use super::{codec, value};
use crate::model::{Flow, MapOver, Step, types::vec_element};

/// What is known of the elements.
pub(super) enum Element<'m> {
    /// Their type is written down.
    Known(Known<'m>),
    /// Only the type checker knows it: the list's type, and where it was named as the source.
    Projected {
        list: &'m Type,
        at: Span,
        /// The function that gets an element of a task; its bound says that there is a list.
        get: &'static str,
    },
}

pub(super) struct Known<'m> {
    pub(super) ty: &'m Type,
    /// The same for items of ours.
    pub(super) value: TokenStream,
    /// The function that returns the codec.
    pub(super) codec: TokenStream,
    /// What the list is called.
    pub(super) source: String,
    /// The list's type where it is written, and a place on its line that no editor looks anything up at.
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
            ty,
            value: value::input_element(flow),
            // Not checked once more: the handlers stand under the condition that it can be stored.
            codec: quote!(__p::codec::<#ty>),
            source: "the flow's input".to_owned(),
            list: list.to_token_stream(),
            beside_list: flow.args.input_equals.unwrap_or_else(Span::call_site),
        }),
        None => Element::Projected {
            list,
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
            ty,
            value: value::element_name(source).into_token_stream(),
            codec: codec::element_name(source).into_token_stream(),
            source: format!("`{}`", source.name),
            list: output.ok.to_token_stream(),
            beside_list: output.arrow,
        }),
        None => Element::Projected {
            list: &output.ok,
            at,
            get: "item_of",
        },
    })
}
