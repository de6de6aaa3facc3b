//! The meaning of each parameter of a step.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident};
use syn::{FnArg, Pat, PatType, Type, ext::IdentExt};

use super::{
    Edge, MapOver,
    types::{
        bare, has_associated_type, impl_trait, is_borrowed_object, local, option_depth,
        unsized_part, without_self,
    },
};
use crate::parse::{FlowArgs, From, StepFn};

/// A parameter other than `self`.
pub(crate) struct Param {
    pub(crate) ty: Type,
    pub(crate) binding: Binding,
    /// The variable that holds its value while it is decoded and taken.
    pub(crate) local: Ident,
    /// The name that binds it, where it was written.
    pub(crate) name: Option<Ident>,
    /// The name as it is looked up.
    pub(crate) key: String,
    /// `true` if that is the one in `#[from(..)]`.
    pub(crate) is_from: bool,
}

/// The value that fills a parameter.
pub(crate) enum Binding {
    Input,
    Item,
    Ctx,
    State,
    Dependency(usize),
    /// The end of the run, in a step that runs after it.
    End,
    /// Nothing; the call still gets a value of its type, so that the rest can be checked.
    Poisoned(Mistake),
}

/// The reason why a parameter can't be filled.
pub(crate) enum Mistake {
    ImplTrait(TokenStream),
    MutableReference(TokenStream),
    /// `&dyn Trait`, whose value could be of any type.
    TraitObject(TokenStream),
    /// A type that no variable can have.
    Unsized(Box<Type>),
    /// A lifetime of its own on a reference.
    Lifetime(TokenStream),
    MalformedFrom(TokenStream),
    /// A pattern without `#[from(..)]`.
    Pattern(TokenStream),
    Unknown,
    Twice,
    ItemOfSingleStep,
    WholeListOfMapStep,
    NoState,
    /// `end` in a step that is part of the run.
    EndOfUnendedRun,
    ItemOfEndStep,
    /// `input: RunEnd` in an end step.
    EndAsInput,
    /// An output that is an `Option` itself, of a step that may be skipped.
    SkippableOption(usize),
    /// Reported elsewhere, or by rustc.
    Elsewhere,
}

/// The possible targets of names in one step.
pub(super) struct Scope<'m> {
    pub(super) args: &'m FlowArgs,
    pub(super) self_ty: &'m TokenStream,
    /// The names of all steps, by index; also of those that can't be read.
    pub(super) names: &'m [String],
    pub(super) has_output: &'m [bool],
    /// Of a step that may be skipped: how many `Option`s its output is, if it is one.
    pub(super) skippable_options: &'m [Option<usize>],
    pub(super) unreadable: &'m [String],
    pub(super) edges: &'m [Edge],
    pub(super) has_unreadable_edges: bool,
    /// `true` if the list of dependencies is empty, which is a mistake of its own.
    pub(super) has_no_edges: bool,
    pub(super) map: Option<MapOver>,
    pub(super) is_end_step: bool,
}

impl Scope<'_> {
    pub(super) fn params(&self, source: &StepFn) -> Vec<Param> {
        let mut params: Vec<Param> = Vec::new();
        for (position, (input, from)) in source.sig.inputs.iter().zip(&source.from).enumerate() {
            // A receiver is a mistake of the signature.
            let FnArg::Typed(written) = input else {
                continue;
            };
            let mut param = self.param(position, written, from);
            let is_taken = !matches!(param.binding, Binding::Poisoned(_))
                && params
                    .iter()
                    .any(|other| other.key == param.key && other.is_bound());
            if is_taken {
                let earlier = source.sig.inputs.iter().take(position);
                // Two variables of one name are an error of rustc's.
                let mistake = if earlier
                    .filter_map(variable)
                    .any(|it| Some(it) == variable(input))
                {
                    Mistake::Elsewhere
                } else {
                    Mistake::Twice
                };
                param.binding = Binding::Poisoned(mistake);
            }
            params.push(param);
        }
        params
    }

    fn param(&self, position: usize, written: &PatType, from: &From) -> Param {
        let ty = without_self(&written.ty, self.self_ty);
        let name = match (from, &*written.pat) {
            (From::Name(name), _) => Some(name.clone()),
            (From::Absent, Pat::Ident(pat)) => Some(pat.ident.clone()),
            (From::Absent | From::Malformed(_), _) => None,
        };
        let key = name
            .as_ref()
            .map_or_else(String::new, |name| self.key(name, from));
        let binding = match mistake(written, from) {
            Some(mistake) => Binding::Poisoned(mistake),
            None => self.of_option(&ty, self.of_end(&ty, self.binding(&key))),
        };
        Param {
            ty,
            binding,
            local: local(&format_ident!("__p{position}").to_string()),
            name,
            key,
            is_from: matches!(from, From::Name(_)),
        }
    }

    /// `_parse` binds like `parse`, unless it is written in `#[from(..)]` or is itself a name.
    fn key(&self, name: &Ident, from: &From) -> String {
        let name = name.unraw().to_string();
        match name.strip_prefix('_') {
            Some(rest) if matches!(from, From::Absent) && self.lookup(&name).is_none() => {
                rest.to_owned()
            }
            _ => name,
        }
    }

    /// Absence is an `Option` of its own.
    fn of_option(&self, ty: &Type, binding: Binding) -> Binding {
        match binding {
            Binding::Dependency(step)
                if self.skippable_options[step].is_some_and(|depth| option_depth(ty) <= depth) =>
            {
                Binding::Poisoned(Mistake::SkippableOption(step))
            }
            binding => binding,
        }
    }

    /// Reports a value that its type shows to be meant as the end of the run.
    fn of_end(&self, ty: &Type, binding: Binding) -> Binding {
        if !is_run_end(ty) {
            return binding;
        }
        match binding {
            Binding::Poisoned(Mistake::Unknown) if !self.is_end_step => {
                Binding::Poisoned(Mistake::EndOfUnendedRun)
            }
            Binding::Input
                if self.is_end_step && !self.args.input.as_ref().is_some_and(is_run_end) =>
            {
                Binding::Poisoned(Mistake::EndAsInput)
            }
            binding => binding,
        }
    }

    fn lookup(&self, key: &str) -> Option<Binding> {
        match key {
            "input" => Some(Binding::Input),
            "item" => Some(Binding::Item),
            "ctx" => Some(Binding::Ctx),
            "state" => Some(Binding::State),
            "end" if self.is_end_step => Some(Binding::End),
            step => self
                .edges
                .iter()
                .filter_map(Edge::meant)
                .find(|&dependency| self.names[dependency] == step)
                .map(Binding::Dependency),
        }
    }

    fn binding(&self, key: &str) -> Binding {
        let Some(binding) = self.lookup(key) else {
            // The name of a dependency that is unknown, or of a step that can't be read: the real
            // mistake is there. So it is when the dependencies can't be read at all.
            let is_known = self.has_unreadable_edges
                || (self.has_no_edges && self.names.iter().any(|name| name == key))
                || self.edges.iter().any(|edge| edge.at.unraw() == key)
                || self.unreadable.iter().any(|name| name == key);
            let mistake = if is_known {
                Mistake::Elsewhere
            } else if key == "end" && !self.names.iter().any(|name| name == key) {
                Mistake::EndOfUnendedRun
            } else {
                Mistake::Unknown
            };
            return Binding::Poisoned(mistake);
        };
        let mistake = match (&binding, self.map) {
            (Binding::Item, None) if self.is_end_step && self.has_unreadable_edges => {
                Mistake::Elsewhere
            }
            (Binding::Item, None) if self.is_end_step => Mistake::ItemOfEndStep,
            (Binding::Item, None) if self.edges.iter().any(|edge| edge.at == "item") => {
                Mistake::Elsewhere
            }
            (Binding::Item, None) => Mistake::ItemOfSingleStep,
            (Binding::Item, Some(MapOver::Nothing)) => Mistake::Elsewhere,
            (Binding::Dependency(_), Some(_)) => Mistake::WholeListOfMapStep,
            (Binding::Dependency(step), None) if !self.has_output[*step] => Mistake::Elsewhere,
            (Binding::Input, _) if self.args.input.is_none() => Mistake::Elsewhere,
            // One of the words that are no arguments may have stood for it.
            (Binding::State, _) if !self.args.has("state") && self.args.keys.has_unknown => {
                Mistake::Elsewhere
            }
            (Binding::State, _) if !self.args.has("state") => Mistake::NoState,
            (Binding::State, _) if self.args.state.is_none() => Mistake::Elsewhere,
            _ => return binding,
        };
        Binding::Poisoned(mistake)
    }
}

impl Param {
    fn is_bound(&self) -> bool {
        !matches!(self.binding, Binding::Poisoned(_))
    }
}

/// The name of a parameter that is no pattern.
fn variable(input: &FnArg) -> Option<&Ident> {
    match input {
        FnArg::Typed(param) => match &*param.pat {
            Pat::Ident(pat) => Some(&pat.ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// Returns `true` if a type is written `RunEnd`, or a reference to it.
fn is_run_end(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(reference) => is_run_end(&reference.elem),
        Type::Path(path) => (path.path.segments.last()).is_some_and(|last| last.ident == "RunEnd"),
        _ => false,
    }
}

/// Returns the mistake that is one whatever the name leads to.
fn mistake(written: &PatType, from: &From) -> Option<Mistake> {
    if let Some(ty) = impl_trait(&written.ty) {
        return Some(Mistake::ImplTrait(ty.to_token_stream()));
    }
    if let Type::Reference(reference) = bare(&written.ty) {
        if reference.mutability.is_some() {
            return Some(Mistake::MutableReference(reference.to_token_stream()));
        }
        if is_borrowed_object(&written.ty) {
            return Some(Mistake::TraitObject(reference.to_token_stream()));
        }
        if let Some(lifetime) = reference
            .lifetime
            .as_ref()
            .filter(|it| it.ident == "static")
        {
            return Some(Mistake::Lifetime(lifetime.to_token_stream()));
        }
    }
    if let Some(ty) = unsized_part(&mut written.ty.clone()) {
        return Some(Mistake::Unsized(Box::new(ty.clone())));
    }
    if has_associated_type(&written.ty) {
        return Some(Mistake::Elsewhere);
    }
    match (from, &*written.pat) {
        (From::Malformed(attr), _) => Some(Mistake::MalformedFrom(attr.to_token_stream())),
        (From::Name(_), _) | (From::Absent, Pat::Ident(_)) => None,
        (From::Absent, pat) => Some(Mistake::Pattern(pat.to_token_stream())),
    }
}
