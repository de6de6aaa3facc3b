//! The check of each parameter that takes an output or an element.
//!
//! For each there is a trait with a text of its own for types that don't fit, and a function whose bound is that trait. rustc
//! underlines the parameter's type, because the call names it, and what the value comes from, because the bound is
//! placed there.

use pgflow_definition::SkipMode;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::{
    element::{self, Element},
    value,
};
use crate::model::{
    Binding, Flow, Output, Param, Skips, Step,
    types::{ends, is_option, is_string, show, vec_element},
};

pub(super) fn checks(flow: &Flow<'_>) -> TokenStream {
    let steps = flow.emitted().map(|(_, step)| step);
    let checks: Vec<Check> = steps
        .flat_map(|step| step.params.iter().map(move |param| (step, param)))
        .filter_map(|(step, param)| check(flow, step, param))
        .collect();
    let traits = checks.iter().map(Check::trait_with_text);
    let functions = checks.iter().map(Check::function);
    quote! {
        #(#traits)*
        struct __Takes;
        impl __Takes { #(#functions)* }
    }
}

/// The function that checks a parameter.
pub(super) fn name(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> Ident {
    let source = match param.binding {
        Binding::Dependency(index) => &flow.steps[index].name,
        _ => &param.key,
    };
    let name = format_ident!("{}_takes_{source}", step.name);
    // Names that contain the word could otherwise be put together in two ways.
    let is_ambiguous = step.name.contains("_takes") || source.contains("takes_");
    if is_ambiguous {
        format_ident!("{name}_as_{}", step.name.len())
    } else {
        name
    }
}

struct Check {
    name: Ident,
    /// What holds the value: `Required` or `Skippable`.
    slot: TokenStream,
    /// The value's type.
    ty: TokenStream,
    /// Where the value comes from: a type that the bound is placed at, and a place on the same line for the function.
    origin: TokenStream,
    beside_origin: Span,
    text: Text,
}

#[derive(Default)]
struct Text {
    message: String,
    label: String,
    note: Option<String>,
}

fn check(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> Option<Check> {
    let name = name(flow, step, param);
    match param.binding {
        Binding::Dependency(index) => {
            let dependency = &flow.steps[index];
            let output = dependency.output.as_ref().ok()?;
            let skips = flow.skips[index];
            let slot = if skips.leaves_dependents_without {
                quote!(Skippable)
            } else {
                quote!(Required)
            };
            Some(Check {
                name,
                slot,
                ty: value::output_name(dependency).into_token_stream(),
                origin: output.ok.to_token_stream(),
                beside_origin: output.arrow,
                text: dependency_text(step, param, dependency, output, skips),
            })
        }
        Binding::Item => match element::of_step(flow, step)? {
            Element::Projected { .. } => None,
            Element::Known(element) => Some(Check {
                name,
                slot: quote!(Required),
                ty: element.value,
                text: Text {
                    message: format!(
                        "step `{}` maps over {}, whose elements are `{{Out}}`, but its `item` is `{{Self}}`",
                        step.name, element.source
                    ),
                    label: one_of(
                        borrowed(element.ty, vec_element(element.ty)).as_deref(),
                        |form| format!("`{form}`"),
                    ),
                    note: None,
                },
                origin: element.list,
                beside_origin: element.beside_list,
            }),
        },
        _ => None,
    }
}

fn dependency_text(
    step: &Step<'_>,
    param: &Param,
    dependency: &Step<'_>,
    output: &Output,
    skips: Skips,
) -> Text {
    let (me, name) = (&step.name, &dependency.name);
    let each = match dependency.map {
        Some(_) => " (one per element)",
        None => "",
    };
    let element = match dependency.map {
        Some(_) => Some(&output.ok),
        None => vec_element(&output.ok),
    };
    let borrowed = borrowed(&output.ok, element);
    let mismatch = format!(
        "step `{me}` takes `{name}` as `{{Self}}`, but step `{name}` returns `{{Out}}`{each}"
    );
    if skips.leaves_dependents_without {
        let when = if dependency.when_exhausted() == SkipMode::Skip {
            "when its attempts are exhausted"
        } else {
            "when its condition is not met"
        };
        return Text {
            message: if is_option(&param.ty) {
                mismatch
            } else {
                format!(
                    "step `{name}` may be skipped, but step `{me}` takes its output as `{{Self}}`"
                )
            },
            label: one_of(borrowed.as_deref(), |form| format!("`Option<{form}>`")),
            note: Some(format!(
                "`{name}` is skipped {when}, and `{me}` runs without its output then"
            )),
        };
    }
    let label = one_of(borrowed.as_deref(), |form| format!("`{form}`"));
    if !is_option(&param.ty) || is_option(&output.ok) {
        return Text {
            message: mismatch,
            label,
            note: None,
        };
    }
    let (what, note) = if skips.cascades {
        (
            "is always present here",
            format!(
                "when `{name}` is skipped, `{me}` is skipped with it (\"skip-cascade\"), so the output is always there when `{me}` runs"
            ),
        )
    } else {
        (
            "can't be skipped",
            format!(
                "an `Option` is for dependencies with `if`, `if_not` or `when_exhausted = \"skip\"`; `{name}` has none of them"
            ),
        )
    };
    Text {
        message: format!("step `{name}` {what}, but step `{me}` takes its output as `{{Self}}`"),
        label,
        note: Some(note),
    }
}

/// The form in which a value can be borrowed besides `&Out`; the label of a trait is a format string.
fn borrowed(ty: &Type, element: Option<&Type>) -> Option<String> {
    let form = match element {
        Some(element) => format!("&[{}]", show(element)),
        None if is_string(ty) => "&str".to_owned(),
        None => return None,
    };
    Some(form.replace('{', "{{").replace('}', "}}"))
}

fn one_of(borrowed: Option<&str>, form: impl Fn(&str) -> String) -> String {
    let (owned, reference) = (form("{Out}"), form("&{Out}"));
    match borrowed {
        Some(borrowed) => format!("expected {owned}, {reference} or {}", form(borrowed)),
        None => format!("expected {owned} or {reference}"),
    }
}

impl Check {
    fn trait_with_text(&self) -> TokenStream {
        let Self {
            name, slot, text, ..
        } = self;
        let Text {
            message,
            label,
            note,
        } = text;
        let note = note.as_ref().map(|note| quote!(, note = #note));
        quote! {
            #[diagnostic::on_unimplemented(message = #message, label = #label #note)]
            trait #name<'s, Out>: __p::FromSlot<'s, __p::#slot<Out>> {}
            #[diagnostic::do_not_recommend]
            impl<'s, Out, P: __p::FromSlot<'s, __p::#slot<Out>>> #name<'s, Out> for P {}
        }
    }

    fn function(&self) -> TokenStream {
        let Self { name, slot, ty, .. } = self;
        // The bound begins and ends at the origin; the function's name stands on the same line, or rustc would show its line too.
        let (first, last) = ends(&self.origin);
        let (binder, close) = (quote_spanned!(first=> for<>), quote_spanned!(last=> >));
        let function = Ident::new(&name.to_string(), self.beside_origin);
        quote! {
            fn #function<'s, P>(slot: &'s mut __p::#slot<#ty>) -> P
            where
                P: #binder #name<'s, #ty #close
            {
                P::from_slot(slot)
            }
        }
    }
}
