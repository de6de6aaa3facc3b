//! Every mistake of one compile, reported together.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Collects mistakes; must be turned into tokens in the end.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Reports at one token.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.0.push(syn::Error::new(span, message));
    }

    /// Reports with all of `tokens` underlined.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.0.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn into_messages(mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Leaves them out: what they are about was reported in another way.
    pub(crate) fn forget(mut self) {
        self.0.clear();
    }

    /// One `compile_error!` for each mistake.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        std::mem::take(&mut self.0)
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        // A mistake that is found and not reported would let a wrong flow compile.
        assert!(
            self.0.is_empty() || std::thread::panicking(),
            "mistakes were found and not reported"
        );
    }
}
