//! The function of a step.

use proc_macro2::TokenStream;
use syn::{FnArg, GenericArgument, GenericParam, PathArguments, Safety, Signature, Type, TypePath};

use crate::{
    errors::Errors,
    model::{
        OutputMistake, Step, UnstorableKind,
        types::{bare, impl_trait, owned, show, sized},
    },
};

pub(super) fn check(step: &Step<'_>, errors: &mut Errors) {
    let sig = &step.source.sig;
    qualifiers(step, sig, errors);
    generics(sig, errors);
    for attr in &step.source.param_conditions {
        errors.on(
            attr,
            "`#[cfg]` can't be put on a parameter of a step: every build of a flow must take the same values; remove it",
        );
    }
    for attr in &step.source.conditions {
        errors.on(
            attr,
            "`#[cfg]` can't be put on a step: every build of a flow must have the same steps; remove it, or use it inside the function",
        );
    }
    for input in &sig.inputs {
        if let FnArg::Receiver(receiver) = input {
            errors.on(
                receiver,
                "a step takes no `self`: a worker may run it anywhere; take the flow's `state` instead",
            );
        }
    }
    if let Err(mistake) = &step.output {
        output(step, mistake, errors);
    }
}

fn qualifiers(step: &Step<'_>, sig: &Signature, errors: &mut Errors) {
    let makes_a_future = matches!(step.output, Err(OutputMistake::Future(..)));
    if sig.asyncness.is_none() && !makes_a_future {
        errors.at(
            sig.fn_token.span,
            format!(
                "step `{0}` must be an `async fn`; write `async fn {0}`",
                step.ident
            ),
        );
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.on(
            token,
            "a step can't be `unsafe`: nobody could uphold its contract; remove the word",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.on(
            abi,
            "a step is an ordinary function of Rust; remove the ABI",
        );
    }
}

fn generics(sig: &Signature, errors: &mut Errors) {
    let params = &sig.generics.params;
    if params.is_empty() {
        return;
    }
    let is_lifetime = |param: &GenericParam| matches!(param, GenericParam::Lifetime(_));
    if params.iter().all(is_lifetime) {
        errors.on(
            params,
            "a step needs no lifetime parameters; write `&T` without a lifetime",
        );
    } else {
        errors.on(
            params,
            "a step can't be generic: its input and output are stored as JSON, so their types must be known; write them out",
        );
    }
}

fn output(step: &Step<'_>, mistake: &OutputMistake, errors: &mut Errors) {
    let name = &step.name;
    match mistake {
        OutputMistake::Missing => errors.at(
            step.ident.span(),
            format!("step `{name}` must return a `Result`: write `-> StepResult<()>` if it has no output"),
        ),
        OutputMistake::NotAResult(ty) => {
            let output = match impl_trait(ty) {
                Some(_) => "Output".to_owned(),
                None => show(&owned(ty)),
            };
            errors.on(
                ty,
                format!(
                    "step `{name}` must return a `Result`\n\nhelp: write `StepResult<{output}>`, `anyhow::Result<{output}>` or \
                     `Result<{output}, YourError>`"
                ),
            );
        }
        OutputMistake::Future(ty, value) => {
            let value = match bare(value) {
                Type::Path(path) if is_result(path) => show(value),
                value => format!("StepResult<{}>", show(value)),
            };
            errors.on(
                ty,
                format!(
                    "an `async fn` makes a future of what step `{name}` returns by itself\n\nhelp: write `async fn {name}(..) -> {value}`"
                ),
            );
        }
        OutputMistake::Swapped(ty) => errors.on(
            ty,
            format!(
                "step `{name}` would return an error as its output: the output comes first in a `Result`\n\nhelp: write {}",
                swapped(ty)
            ),
        ),
        // An alias and a type without arguments look alike here: rustc reports which it is.
        OutputMistake::Alias(_) => {}
        OutputMistake::NullElement(ty) => {
            let help = match bare(ty) {
                Type::Tuple(_) => "return something that is not null, such as `bool`".to_owned(),
                _ => format!(
                    "return a type that is never null, such as a struct with a field of type `{}`",
                    show(ty)
                ),
            };
            errors.on(
                ty,
                format!(
                    "`{name}` returns `{}` for an element, and a null of its own could not be distinguished from an element that failed \
                     (`on_element_failure = \"null\"`)\n\nhelp: {help}",
                    show(ty)
                ),
            );
        }
        OutputMistake::Unstorable(parts) => {
            for part in parts {
                let message = match part.kind {
                    UnstorableKind::Borrowed => {
                        "a step's output must own its data: it is stored as JSON when the step completes; write for example `String` for `&str`"
                    }
                    UnstorableKind::ImplTrait => {
                        "a step's output needs a concrete type: its dependents read it back from JSON; name the type"
                    }
                    UnstorableKind::Unsized => {
                        errors.on(&part.tokens, without_size(&part.tokens));
                        continue;
                    }
                    UnstorableKind::Elsewhere => continue,
                };
                errors.on(&part.tokens, message);
            }
        }
    }
}

fn without_size(output: &TokenStream) -> String {
    let proposal = syn::parse2::<Type>(output.clone()).map_or_else(
        |_| String::new(),
        |ty| format!("; write `{}`", show(&sized(&ty))),
    );
    format!("a step's output needs a type of a known size{proposal}")
}

fn is_result(path: &TypePath) -> bool {
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident.to_string().ends_with("Result"))
}

/// `Result<Ok, Err>` of `Result<Err, Ok>`.
fn swapped(ty: &Type) -> String {
    let mut ty = bare(ty).clone();
    if let Type::Path(path) = &mut ty
        && let Some(last) = path.path.segments.last_mut()
        && let PathArguments::AngleBracketed(arguments) = &mut last.arguments
    {
        let reversed: Vec<GenericArgument> = arguments.args.iter().rev().cloned().collect();
        arguments.args = reversed.into_iter().collect();
    }
    format!("`{}`", show(&ty))
}
