//! The return type of a step.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{
    GenericArgument, Lifetime, PathArguments, ReturnType, Signature, Type, TypeImplTrait,
    TypeInfer, TypeReference,
    visit_mut::{self, VisitMut},
};

use super::types::{bare, without_self};

/// `..Result<Ok, Err>`.
pub(crate) struct Output {
    pub(crate) ok: Type,
    /// Absent when the `Result` is an alias that fixes it.
    pub(crate) err: Option<Type>,
    pub(crate) whole: Type,
    /// The `->`: a place on the line of the type that no editor looks anything up at.
    pub(crate) arrow: Span,
}

pub(crate) enum OutputMistake {
    Missing,
    NotAResult(Box<Type>),
    /// Something that is called a result, but does not name the output.
    Alias(Box<Type>),
    /// Parts of the output that can't be stored.
    Unstorable(Vec<Unstorable>),
}

pub(crate) struct Unstorable {
    pub(crate) tokens: TokenStream,
    pub(crate) kind: UnstorableKind,
}

#[derive(Clone, Copy)]
pub(crate) enum UnstorableKind {
    Borrowed,
    ImplTrait,
    /// Something that no signature can hold; rustc reports that.
    Elsewhere,
}

impl Output {
    pub(super) fn read(sig: &Signature, self_ty: &TokenStream) -> Result<Self, OutputMistake> {
        let ReturnType::Type(arrow, whole) = &sig.output else {
            return Err(OutputMistake::Missing);
        };
        let (ok, err) = result_of(whole)?;
        let unstorable = unstorable_parts(ok, sig);
        if !unstorable.is_empty() {
            return Err(OutputMistake::Unstorable(unstorable));
        }
        Ok(Self {
            ok: without_self(ok, self_ty),
            err: err.map(|err| without_self(err, self_ty)),
            whole: without_self(whole, self_ty),
            arrow: arrow.spans[0],
        })
    }
}

/// The types of a `Result`, by its name: aliases of it are called `..Result` too and have the output first.
fn result_of(whole: &Type) -> Result<(&Type, Option<&Type>), OutputMistake> {
    let not_a_result = || OutputMistake::NotAResult(Box::new(whole.clone()));
    let Type::Path(path) = bare(whole) else {
        return Err(not_a_result());
    };
    let last = path.path.segments.last().ok_or_else(not_a_result)?;
    if !last.ident.to_string().ends_with("Result") {
        return Err(not_a_result());
    }
    let alias = || OutputMistake::Alias(Box::new(whole.clone()));
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Err(alias());
    };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    let ok = types.next().ok_or_else(alias)?;
    Ok((ok, types.next()))
}

fn unstorable_parts(ok: &Type, sig: &Signature) -> Vec<Unstorable> {
    struct Find {
        found: Vec<Unstorable>,
        /// What a lifetime that is left out, or `'_`, stands for: nothing, when there is not exactly one parameter that borrows.
        elided: UnstorableKind,
    }
    impl Find {
        fn push(&mut self, tokens: impl ToTokens, kind: UnstorableKind) {
            let tokens = tokens.to_token_stream();
            self.found.push(Unstorable { tokens, kind });
        }

        fn kind_of(&self, lifetime: Option<&Lifetime>) -> UnstorableKind {
            match lifetime {
                None => self.elided,
                Some(lifetime) if lifetime.ident == "_" => self.elided,
                Some(lifetime) if lifetime.ident == "static" => UnstorableKind::Borrowed,
                // Not declared, or the lifetime parameter of a step, which is reported.
                Some(_) => UnstorableKind::Elsewhere,
            }
        }
    }
    // Does not look inside of what it finds: one mistake for each place.
    impl VisitMut for Find {
        fn visit_type_reference_mut(&mut self, ty: &mut TypeReference) {
            let kind = self.kind_of(ty.lifetime.as_ref());
            self.push(ty, kind);
        }
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            // A `Cow<'static, str>` owns its data.
            if lifetime.ident != "static" {
                let kind = self.kind_of(Some(lifetime));
                self.push(lifetime, kind);
            }
        }
        fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
            self.push(ty, UnstorableKind::ImplTrait);
        }
        fn visit_type_infer_mut(&mut self, ty: &mut TypeInfer) {
            self.push(ty, UnstorableKind::Elsewhere);
        }
    }
    let elided = if borrows(sig) == 1 {
        UnstorableKind::Borrowed
    } else {
        UnstorableKind::Elsewhere
    };
    let found = Vec::new();
    let mut find = Find { found, elided };
    find.visit_type_mut(&mut ok.clone());
    find.found
}

/// How many lifetimes stand in the parameters, as far as they are written.
fn borrows(sig: &Signature) -> usize {
    struct Count(usize);
    impl VisitMut for Count {
        fn visit_type_reference_mut(&mut self, ty: &mut TypeReference) {
            self.0 += usize::from(ty.lifetime.is_none());
            visit_mut::visit_type_reference_mut(self, ty);
        }
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            self.0 += usize::from(lifetime.ident != "static");
        }
    }
    let mut count = Count(0);
    for input in &sig.inputs {
        count.visit_fn_arg_mut(&mut input.clone());
    }
    count.0
}
