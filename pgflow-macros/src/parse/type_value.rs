//! Types as values of arguments.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Type, TypeImplTrait, TypeInfer, TypeReference, parse::ParseStream, visit_mut::VisitMut};

use crate::errors::Errors;

const BORROWED_INPUT: &str = "`input` can't be borrowed: it is stored as JSON when a run starts; a type that owns its data was \
                              expected; write for example `String` for `&str`, or `Vec<T>` for `&[T]`";
const BORROWED_STATE: &str = "`state` can't be borrowed for a time: it lives as long as the worker; write a type that owns its data, \
                              `Arc<T>` or `&'static T`";

/// The type of a flow's input. One that can't be an input is reported, and then as good as not read.
pub(super) fn input(stream: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<Type>> {
    read("input", stream, errors, |_| Some(BORROWED_INPUT))
}

/// The type of a flow's state, in the same way.
pub(super) fn state(stream: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<Type>> {
    read("state", stream, errors, |reference| {
        let lifetime = reference.lifetime.as_ref();
        let is_short = lifetime.is_none_or(|lifetime| lifetime.ident == "_");
        is_short.then_some(BORROWED_STATE)
    })
}

fn read(
    key: &str,
    stream: ParseStream<'_>,
    errors: &mut Errors,
    refuse: impl Fn(&TypeReference) -> Option<&'static str>,
) -> syn::Result<Option<Type>> {
    let mut ty: Type = stream.parse()?;
    let mut find = Find {
        key,
        refuse,
        found: Vec::new(),
    };
    find.visit_type_mut(&mut ty);
    if find.found.is_empty() {
        return Ok(Some(ty));
    }
    for (tokens, message) in find.found {
        errors.on(tokens, message);
    }
    Ok(None)
}

struct Find<'k, R> {
    key: &'k str,
    refuse: R,
    found: Vec<(TokenStream, String)>,
}

impl<R> Find<'_, R> {
    fn unnamed(&mut self, ty: &impl ToTokens) {
        let key = self.key;
        let message = format!(
            "`{key}` needs a type that can be named; `{}` stands for one that only the compiler knows; write it out",
            ty.to_token_stream()
        );
        self.found.push((ty.to_token_stream(), message));
    }
}

// Does not look inside of what it finds: one mistake for each place.
impl<R: Fn(&TypeReference) -> Option<&'static str>> VisitMut for Find<'_, R> {
    fn visit_type_reference_mut(&mut self, ty: &mut TypeReference) {
        match (self.refuse)(ty) {
            Some(message) => self.found.push((ty.to_token_stream(), message.to_owned())),
            None => self.visit_type_mut(&mut ty.elem),
        }
    }

    fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
        self.unnamed(ty);
    }

    fn visit_type_infer_mut(&mut self, ty: &mut TypeInfer) {
        self.unnamed(ty);
    }
}
