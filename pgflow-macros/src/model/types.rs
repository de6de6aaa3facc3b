//! Types as they are written. The macro can't ask what a name stands for; it reads what stands
//! there.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    GenericArgument, PathArguments, Type, TypeImplTrait, TypePath, parse_quote,
    visit_mut::{self, VisitMut},
};

/// `T` of a type written `Vec<T>`.
pub(crate) fn vec_element(ty: &Type) -> Option<&Type> {
    argument_of(ty, "Vec")
}

/// The type without the invisible delimiters of `macro_rules`, or parentheses.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}

/// Returns whether a type is written `Option<T>` or a reference to one.
pub(crate) fn is_option(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(reference) => is_option(&reference.elem),
        ty => argument_of(ty, "Option").is_some(),
    }
}

/// Returns the number of `Option`s around a type, references aside.
pub(crate) fn option_depth(ty: &Type) -> usize {
    match bare(ty) {
        Type::Reference(reference) => option_depth(&reference.elem),
        ty => argument_of(ty, "Option").map_or(0, |value| 1 + option_depth(value)),
    }
}

/// Returns whether a type is, or holds, one that is written `Self::..`. No inherent `impl` has such
/// types; rustc reports it.
pub(crate) fn has_associated_type(ty: &Type) -> bool {
    struct Find(bool);
    impl VisitMut for Find {
        fn visit_type_path_mut(&mut self, path: &mut TypePath) {
            self.0 |= is_associated(path);
            visit_mut::visit_type_path_mut(self, path);
        }
    }
    let mut find = Find(false);
    find.visit_type_mut(&mut ty.clone());
    find.0
}

fn is_associated(path: &TypePath) -> bool {
    let segments = &path.path.segments;
    path.qself.is_none() && segments.len() > 1 && segments[0].ident == "Self"
}

/// `String` of a type written `String`.
pub(crate) fn is_string(ty: &Type) -> bool {
    match bare(ty) {
        Type::Path(path) => (path.path.segments.last())
            .is_some_and(|last| last.ident == "String" && last.arguments.is_none()),
        _ => false,
    }
}

/// Returns whether a type, as it is written, has no size of its own.
pub(crate) fn is_unsized(ty: &Type) -> bool {
    match bare(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    }
}

/// Returns the type of unknown size that stands where a size is needed: the type itself, or the
/// argument of an `Option` or a `Vec`.
pub(crate) fn unsized_part(ty: &mut Type) -> Option<&mut Type> {
    if is_unsized(ty) {
        return Some(ty);
    }
    match ty {
        Type::Group(group) => unsized_part(&mut group.elem),
        Type::Paren(paren) => unsized_part(&mut paren.elem),
        Type::Reference(reference) if !is_unsized(&reference.elem) => {
            unsized_part(&mut reference.elem)
        }
        Type::Path(path) => {
            let last = path.path.segments.last_mut()?;
            let PathArguments::AngleBracketed(arguments) = &mut last.arguments else {
                return None;
            };
            match arguments.args.first_mut()? {
                GenericArgument::Type(ty) if last.ident == "Option" || last.ident == "Vec" => {
                    unsized_part(ty)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// A type that holds what one without a size would.
pub(crate) fn sized(ty: &Type) -> Type {
    match bare(ty) {
        Type::TraitObject(object) => parse_quote!(Box<#object>),
        ty => owned(&parse_quote!(&#ty)),
    }
}

/// The type of the value that a parameter of this type borrows, or that may be absent.
pub(crate) fn owned(ty: &Type) -> Type {
    if let Some(value) = argument_of(ty, "Option") {
        return owned(value);
    }
    match bare(ty) {
        Type::Reference(reference) => match bare(&reference.elem) {
            Type::Slice(slice) => {
                let element = &slice.elem;
                parse_quote!(Vec<#element>)
            }
            Type::Path(path) if path.path.is_ident("str") => parse_quote!(String),
            ty => owned(ty),
        },
        ty => ty.clone(),
    }
}

fn argument_of<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = bare(ty) else {
        return None;
    };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) if last.ident == name && arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

/// Returns whether a type is written `&dyn Trait`.
pub(crate) fn is_borrowed_object(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(reference) => matches!(bare(&reference.elem), Type::TraitObject(_)),
        _ => false,
    }
}

/// The first `impl Trait` in a type.
pub(crate) fn impl_trait(ty: &Type) -> Option<TypeImplTrait> {
    struct Find(Option<TypeImplTrait>);
    impl VisitMut for Find {
        fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
            self.0.get_or_insert_with(|| ty.clone());
        }
    }
    let mut find = Find(None);
    find.visit_type_mut(&mut ty.clone());
    find.0
}

/// The type with `Self` written out, for code outside of the `impl`.
pub(crate) fn without_self(ty: &Type, self_ty: &TokenStream) -> Type {
    let tokens = replace_self(ty.to_token_stream(), self_ty);
    syn::parse2(tokens).unwrap_or_else(|_| ty.clone())
}

fn replace_self(tokens: TokenStream, self_ty: &TokenStream) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => respan(self_ty.clone(), ident.span()),
        TokenTree::Group(group) => {
            let mut replaced = Group::new(group.delimiter(), replace_self(group.stream(), self_ty));
            replaced.set_span(group.span());
            TokenTree::Group(replaced).into()
        }
        other => TokenStream::from(other),
    };
    tokens.into_iter().map(replace).collect()
}

/// Returns `true` if a type holds a name.
pub(crate) fn names(ty: &Type, name: &str) -> bool {
    fn any(tokens: TokenStream, name: &str) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == name,
            TokenTree::Group(group) => any(group.stream(), name),
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }
    any(ty.to_token_stream(), name)
}

/// Moves every token to one place.
pub(crate) fn respan(tokens: TokenStream, span: Span) -> TokenStream {
    let moved = |token| match token {
        TokenTree::Group(group) => {
            let mut moved = Group::new(group.delimiter(), respan(group.stream(), span));
            moved.set_span(span);
            TokenTree::Group(moved)
        }
        mut other => {
            other.set_span(span);
            other
        }
    };
    tokens.into_iter().map(moved).collect()
}

/// The places of the first and the last token.
pub(crate) fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let mut tokens = tokens.to_token_stream().into_iter();
    let first = tokens
        .next()
        .map_or_else(Span::call_site, |token| token.span());
    let last = tokens.last().map_or(first, |token| token.span());
    (first, last)
}

/// The type as a person would write it.
pub(crate) fn show(ty: &impl ToTokens) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
        ("( ", "("),
        (" )", ")"),
        (" ;", ";"),
        ("! (", "!("),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

/// A name of ours that no name of the user can clash with.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_lists_are_found() {
        let element = |ty: Type| vec_element(&ty).map(show);
        assert_eq!(
            element(parse_quote!(Vec<Package>)).as_deref(),
            Some("Package")
        );
        assert_eq!(
            element(parse_quote!(std::vec::Vec<(u8, u8)>)).as_deref(),
            Some("(u8, u8)")
        );
        assert_eq!(element(parse_quote!(Packages)), None);
        assert_eq!(element(parse_quote!(HashMap<u8, u8>)), None);
    }

    #[test]
    fn options_are_recognised() {
        assert!(is_option(&parse_quote!(Option<&[u8]>)));
        assert!(is_option(&parse_quote!(&Option<u8>)));
        assert!(!is_option(&parse_quote!(Vec<Option<u8>>)));
    }

    #[test]
    fn the_owned_type_is_found_behind_references_and_options() {
        for (taken, value) in [
            (parse_quote!(&[Package]), "Vec<Package>"),
            (parse_quote!(Option<&str>), "String"),
            (parse_quote!(&Option<&Report>), "Report"),
            (parse_quote!(&'a Report), "Report"),
            (parse_quote!([u8; 2]), "[u8; 2]"),
        ] {
            assert_eq!(show(&owned(&taken)), value);
        }
    }

    #[test]
    fn self_is_written_out() {
        let self_ty = quote::quote!(inner::Audit);
        let ty: Type = parse_quote!([Self; Self::LIMIT]);
        assert_eq!(
            show(&without_self(&ty, &self_ty)),
            "[inner::Audit; inner::Audit::LIMIT]"
        );
    }

    #[test]
    fn impl_traits_are_found_anywhere() {
        assert!(impl_trait(&parse_quote!(Vec<impl Clone>)).is_some());
        assert!(impl_trait(&parse_quote!(&dyn Clone)).is_none());
    }
}
