//! The return type of a step.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{
    GenericArgument, Lifetime, Path, PathArguments, ReturnType, Signature, Type, TypeImplTrait,
    TypeInfer, TypeReference,
    visit_mut::{self, VisitMut},
};

use super::types::{bare, has_associated_type, is_option, unsized_part, without_self};

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
    /// A future, and what it results in: an `async fn` makes it by itself.
    Future(Box<Type>, Box<Type>),
    /// The error comes first.
    Swapped(Box<Type>),
    /// Something that is called a result, but does not name the output.
    Alias(Box<Type>),
    /// An element that may be null, of a step for which null stands for one that failed.
    NullElement(Box<Type>),
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
    /// A type that no variable can have.
    Unsized,
    /// Something that no signature can hold; rustc reports that.
    Elsewhere,
}

impl Output {
    pub(super) fn read(sig: &Signature, self_ty: &TokenStream) -> Result<Self, OutputMistake> {
        let ReturnType::Type(arrow, whole) = &sig.output else {
            return Err(OutputMistake::Missing);
        };
        if let Some(value) = future_output(whole) {
            return Err(OutputMistake::Future(
                Box::new((**whole).clone()),
                Box::new(value),
            ));
        }
        let (ok, err) = result_of(whole)?;
        if err.is_some_and(|err| is_std_error(ok) && !may_be_error(err)) {
            return Err(OutputMistake::Swapped(whole.clone()));
        }
        let unstorable = unstorable_parts(whole, ok, sig);
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

impl Output {
    /// The same, unless an element that failed could not be told from it.
    pub(super) fn for_element(self, null_is_failure: bool) -> Result<Self, OutputMistake> {
        let is_null = |ty: &Type| match bare(ty) {
            Type::Tuple(tuple) => tuple.elems.is_empty(),
            ty => is_option(ty),
        };
        if null_is_failure && is_null(&self.ok) {
            return Err(OutputMistake::NullElement(Box::new(self.ok)));
        }
        Ok(self)
    }
}

/// The types of a `Result`, by its name: aliases of it are called `..Result` too and have the
/// output first.
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

/// `T` of `impl Future<Output = T>`, of a box of one, or of `BoxFuture<'_, T>`.
fn future_output(ty: &Type) -> Option<Type> {
    struct Find(Option<Type>);
    impl VisitMut for Find {
        fn visit_path_mut(&mut self, path: &mut Path) {
            if let Some(last) = path.segments.last() {
                let name = last.ident.to_string();
                let output = match name.as_str() {
                    "Future" => assigned(&last.arguments, "Output"),
                    "BoxFuture" | "LocalBoxFuture" => first_type(&last.arguments),
                    // What is inside of other types is no future that the step returns.
                    "Pin" | "Box" => None,
                    _ => return,
                };
                self.0 = self.0.take().or_else(|| output.cloned());
            }
            visit_mut::visit_path_mut(self, path);
        }
    }
    let mut find = Find(None);
    find.visit_type_mut(&mut ty.clone());
    find.0
}

fn assigned<'t>(arguments: &'t PathArguments, name: &str) -> Option<&'t Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(assigned) if assigned.ident == name => Some(&assigned.ty),
        _ => None,
    })
}

fn first_type(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Errors that can't be stored, by their name.
fn is_std_error(ty: &Type) -> bool {
    last_name(ty).is_some_and(|name| name == "Error" || name == "StepError")
}

fn may_be_error(ty: &Type) -> bool {
    match last_name(ty) {
        None => true,
        Some(name) => name.ends_with("Error") || name == "String" || name == "Box",
    }
}

fn last_name(ty: &Type) -> Option<String> {
    match bare(ty) {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

fn unstorable_parts(whole: &Type, ok: &Type, sig: &Signature) -> Vec<Unstorable> {
    struct Find {
        found: Vec<Unstorable>,
        /// The meaning of a lifetime that is left out, or `'_`: nothing, unless exactly one
        /// parameter borrows.
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
    if let Some(part) = unsized_part(&mut ok.clone()) {
        let (tokens, kind) = (part.to_token_stream(), UnstorableKind::Unsized);
        return vec![Unstorable { tokens, kind }];
    }
    if has_associated_type(whole) {
        let tokens = whole.to_token_stream();
        let kind = UnstorableKind::Elsewhere;
        return vec![Unstorable { tokens, kind }];
    }
    let found = Vec::new();
    let mut find = Find { found, elided };
    find.visit_type_mut(&mut ok.clone());
    find.found
}

/// Returns the number of lifetimes in the parameters, as far as they are written.
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
