//! The emitted code when there is no expansion: always the user's own code, so that it keeps its
//! meaning for everything else.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use proc_macro2::{Span, TokenStream};
use quote::quote;

use crate::{
    errors::Errors,
    expand,
    parse::{FlowImpl, removed_everywhere},
};

/// The item as it was written, and the mistakes.
pub(crate) fn unchanged(item: &TokenStream, errors: Errors) -> TokenStream {
    let item = without_our_attributes(item);
    let errors = errors.into_tokens();
    quote!(#item #errors)
}

/// A `#[step]` that stayed would complain that there is no `#[flow]`.
fn without_our_attributes(item: &TokenStream) -> TokenStream {
    let source = catch_unwind(AssertUnwindSafe(|| FlowImpl::parse(item.clone())));
    match source {
        Ok(Ok(source)) => expand::user_item(&source, true),
        Ok(Err(_)) | Err(_) => removed_everywhere(item.clone()),
    }
}

/// Runs an expansion; a bug in it must not take the user's code away.
pub(crate) fn guard(item: &TokenStream, expand: impl FnOnce() -> TokenStream) -> TokenStream {
    catch_unwind(AssertUnwindSafe(expand)).unwrap_or_else(|panic| {
        let mut errors = Errors::default();
        let reason = reason(&*panic);
        errors.at(
            Span::call_site(),
            format!("a bug in `#[flow]`: {reason}; please report it with this code"),
        );
        unchanged(item, errors)
    })
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_item_and_one_error() {
        let item = quote!(impl Audit { #[step] fn parse(#[from(input)] n: u8) -> u8 { n } });
        let out = guard(&item, || panic!("no such step")).to_string();
        assert!(out.contains("fn parse (n : u8) -> u8 { n }"), "{out}");
        assert!(!out.contains("step]"), "{out}");
        assert_eq!(out.matches("compile_error").count(), 1, "{out}");
        assert!(out.contains("a bug in `#[flow]`: no such step"), "{out}");
    }

    #[test]
    fn a_panic_while_mistakes_are_pending_is_still_one_error() {
        let item = quote!(impl Audit {});
        let out = guard(&item, || {
            let mut errors = Errors::default();
            errors.at(Span::call_site(), "a mistake");
            drop(errors);
            TokenStream::new()
        });
        assert_eq!(out.to_string().matches("compile_error").count(), 1);
    }
}
