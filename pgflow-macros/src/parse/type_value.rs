//! Types as values of arguments.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{
    LitStr, Path, PathArguments, Type, TypeImplTrait, TypeInfer, TypeReference,
    parse::{ParseStream, Parser},
    visit_mut::VisitMut,
};

use super::{
    arguments::{begins_argument, ends_value},
    value::{up_to_comma, whole, wrong_form},
};
use crate::{
    errors::Errors,
    model::types::{bare, is_unsized, show, sized},
};

const BORROWED_INPUT: &str = "`input` can't be borrowed: it is stored as JSON when a run starts; a type that owns its data was \
                              expected; write for example `String` for `&str`, or `Vec<T>` for `&[T]`";
const BORROWED_STATE: &str = "`state` can't be borrowed for a time: it lives as long as the worker; write a type that owns its data, \
                              `Arc<T>` or `&'static T`";

/// The type of a flow's input. One that can't be an input is reported, and then as good as not
/// read.
pub(super) fn input(
    key: &Ident,
    stream: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Option<Type>> {
    read(key, stream, errors, |_| Some(BORROWED_INPUT))
}

/// The type of a flow's state, in the same way.
pub(super) fn state(
    key: &Ident,
    stream: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Option<Type>> {
    read(key, stream, errors, |reference| {
        let lifetime = reference.lifetime.as_ref();
        let is_short = lifetime.is_none_or(|lifetime| lifetime.ident == "_");
        is_short.then_some(BORROWED_STATE)
    })
}

fn read(
    key: &Ident,
    stream: ParseStream<'_>,
    errors: &mut Errors,
    refuse: impl Fn(&TypeReference) -> Option<&'static str>,
) -> syn::Result<Option<Type>> {
    let mut ty = written(key, stream, errors)?;
    if is_unsized(&ty) {
        errors.on(
            &ty,
            format!(
                "`{key}` needs a type of a known size; write `{key} = {}`",
                show(&sized(&ty))
            ),
        );
        return Ok(None);
    }
    let name = key.to_string();
    let mut find = Find {
        key: &name,
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

/// The type that stands there. One in quotes, or with a value behind it, is reported and then taken
/// as meant.
fn written(key: &Ident, stream: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Type> {
    let proposal = if key == "input" { "MyInput" } else { "MyState" };
    let Ok(ty) = stream.fork().parse::<Type>() else {
        let written = whole(stream)?;
        if let Ok(text) = syn::parse2::<LitStr>(written.clone())
            && let Ok(ty) = text.parse::<Type>()
        {
            let meant = show(&ty);
            errors.push(wrong_form(key, &written, "a type without quotes", &meant));
            return Ok(ty);
        }
        return Err(wrong_form(key, &written, "a type", proposal));
    };
    stream.parse::<Type>()?;
    if let Some(alone) = without_call(&ty) {
        let all = ty.to_token_stream();
        errors.push(wrong_form(key, &all, "a type and no value", &show(&alone)));
        return Ok(alone);
    }
    if ends_value(stream) || begins_argument(stream) {
        return Ok(ty);
    }
    let mut all = ty.to_token_stream();
    all.extend(up_to_comma(stream)?);
    errors.push(wrong_form(key, &all, "a type and no more", &show(&ty)));
    Ok(ty)
}

/// `App` of `App::new()`, which can be read as a type too.
fn without_call(ty: &Type) -> Option<Type> {
    let Type::Path(path) = bare(ty) else {
        return None;
    };
    let last = path.path.segments.last()?;
    let is_call = matches!(last.arguments, PathArguments::Parenthesized(_));
    let is_function = last.ident.to_string().starts_with(char::is_lowercase);
    if !is_call || path.qself.is_some() {
        return None;
    }
    let mut path = path.clone();
    if is_function && path.path.segments.len() > 1 {
        path.path.segments.pop();
        path.path.segments.pop_punct();
    } else if let Some(last) = path.path.segments.last_mut() {
        last.arguments = PathArguments::None;
    }
    Some(Type::Path(path))
}

/// The path of `crate = ..`. One in quotes is reported, and then taken as meant.
pub(super) fn crate_path(
    key: &Ident,
    stream: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Path> {
    let written = whole(stream)?;
    if let Ok(mut path) = Path::parse_mod_style.parse2(written.clone()) {
        let last = path.segments.last();
        if path.segments.len() > 1 && last.is_some_and(|last| last.ident == "prelude") {
            path.segments.pop();
            path.segments.pop_punct();
            let takes = "the path of the crate, not of a module in it";
            errors.push(wrong_form(key, &written, takes, &show(&path)));
        }
        return Ok(path);
    }
    let text = syn::parse2::<LitStr>(written.clone());
    let path = text.and_then(|text| text.parse_with(Path::parse_mod_style));
    let Ok(path) = path else {
        return Err(wrong_form(key, &written, "a path", "::my_crate::pgflow"));
    };
    errors.push(wrong_form(
        key,
        &written,
        "a path without quotes",
        &show(&path),
    ));
    Ok(path)
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
