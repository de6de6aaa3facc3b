//! The steps' names in messages of rustc.
//!
//! A message about two steps can't hold their names: it stands in the runtime. But it can hold
//! constants, and rustc shows a constant parameter by its name. So a handler is generic over a
//! constant for each step that its messages may name.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};

use crate::model::{Flow, Step};

/// The constants of one handler.
pub(super) struct StepNames {
    /// The names in the handler's types: constants among them must keep their meaning.
    taken: HashSet<String>,
    named: Vec<(String, Ident)>,
}

impl StepNames {
    pub(super) fn new(flow: &Flow<'_>, step: &Step<'_>) -> Self {
        let mut taken = HashSet::new();
        let types = [&flow.input, &flow.state].into_iter().flatten();
        let types = types.chain(step.params.iter().map(|param| &param.ty));
        types.for_each(|ty| idents(ty.to_token_stream(), &mut taken));
        idents(step.source.sig.output.to_token_stream(), &mut taken);
        idents(flow.self_ty.clone(), &mut taken);
        Self {
            taken,
            named: Vec::new(),
        }
    }

    /// The constant for a step.
    pub(super) fn of(&mut self, step: &Step<'_>) -> Ident {
        let known = self.named.iter().find(|(name, _)| *name == step.name);
        if let Some((_, constant)) = known {
            return constant.clone();
        }
        let mut constant = step.ident.clone();
        while self.taken.contains(&constant.to_string()) {
            constant = format_ident!("{constant}_");
        }
        constant.set_span(Span::call_site());
        self.taken.insert(constant.to_string());
        self.named.push((step.name.clone(), constant.clone()));
        constant
    }

    /// The parameters of the handler, and arguments for them.
    pub(super) fn generics(&self) -> (TokenStream, TokenStream) {
        let names = self.named.iter().map(|(_, constant)| constant);
        let arguments = self.named.iter().map(|_| quote!(true));
        let arguments = (!self.named.is_empty()).then(|| quote!(::<#(#arguments),*>));
        (
            quote!(<'a, #(const #names: __p::Name),*>),
            arguments.into_token_stream(),
        )
    }
}

fn idents(tokens: TokenStream, found: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => idents(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
