//! One step.

use pgflow_definition::{ElementFailure, RunsOn, SkipMode, skip::SkipRule};
use proc_macro2::{Ident, Span, TokenStream};
use syn::{Attribute, FnArg, Safety, ext::IdentExt};

use super::{Binding, Edge, MapOver, Output, OutputMistake, Param, types};
use crate::{
    names,
    parse::{StepArgs, StepFn},
};

pub(crate) struct Step<'s> {
    pub(crate) source: &'s StepFn,
    pub(crate) args: &'s StepArgs,
    /// The function's name, as an identifier and without `r#`.
    pub(crate) ident: &'s Ident,
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) variant: Ident,
    /// The earlier step that has the same variant. The step then stays out of the generated code.
    pub(crate) same_variant: Option<usize>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) map: Option<MapOver>,
    pub(crate) params: Vec<Param>,
    pub(crate) output: Result<Output, OutputMistake>,
    /// `if` and `if_not` as JSON.
    pub(crate) required: Option<String>,
    pub(crate) forbidden: Option<String>,
}

impl<'s> Step<'s> {
    /// Reads the step on its own; edges and parameters need the other steps.
    pub(super) fn read(source: &'s StepFn, self_ty: &TokenStream) -> Self {
        let ident = &source.sig.ident;
        let name = ident.unraw().to_string();
        let slug = source.args.slug.as_ref().map(syn::LitStr::value);
        Self {
            source,
            args: &source.args,
            ident,
            slug: slug.unwrap_or_else(|| name.clone()),
            variant: names::variant(&name, ident.span()),
            name,
            same_variant: None,
            edges: Vec::new(),
            map: None,
            params: Vec::new(),
            output: Output::read(&source.sig, self_ty).and_then(|output| {
                let is_element = source.args.map.is_some()
                    && source.args.on_element_failure == Some(ElementFailure::Null);
                output.for_element(is_element)
            }),
            required: None,
            forbidden: None,
        }
    }

    /// Returns the place at which a mistake of the slug is shown.
    pub(crate) fn slug_span(&self) -> Span {
        let literal = self.args.slug.as_ref().map(syn::LitStr::span);
        literal.unwrap_or_else(|| self.ident.span())
    }

    pub(crate) fn docs(&self) -> impl Iterator<Item = &'s Attribute> {
        self.source
            .attrs
            .iter()
            .filter(|attr| attr.path().is_ident("doc"))
    }

    /// Returns whether generated code can call the function with its parameters in order.
    pub(crate) fn is_callable(&self) -> bool {
        let sig = &self.source.sig;
        sig.asyncness.is_some()
            && matches!(sig.safety, Safety::Default)
            && sig.abi.is_none()
            && sig.generics.params.is_empty()
            && self.output.is_ok()
            && self.source.conditions.is_empty()
            && self.source.param_conditions.is_empty()
            && !sig.inputs.iter().any(|input| match input {
                FnArg::Receiver(_) => true,
                FnArg::Typed(param) => {
                    types::impl_trait(&param.ty).is_some()
                        || types::is_borrowed_object(&param.ty)
                        || types::has_associated_type(&param.ty)
                        || types::unsized_part(&mut param.ty.clone()).is_some()
                }
            })
    }

    /// Returns whether the handler takes the flow's input.
    pub(crate) fn needs_flow_input(&self) -> bool {
        self.params
            .iter()
            .any(|param| matches!(param.binding, Binding::Input))
    }

    /// Returns `true` if the step runs when the run has ended, even if the end can't be read.
    pub(crate) fn is_end_step(&self) -> bool {
        self.args.key("on").is_some()
    }

    pub(crate) fn runs_on(&self) -> Option<RunsOn> {
        self.args.runs_on
    }

    /// A mode of an end step is a mistake and has no effect; neither has a condition.
    pub(crate) fn when_unmet(&self) -> SkipMode {
        let mode = self.args.when_unmet.filter(|_| !self.is_end_step());
        mode.unwrap_or(SkipMode::Skip)
    }

    pub(crate) fn when_exhausted(&self) -> SkipMode {
        let mode = self.args.when_exhausted.filter(|_| !self.is_end_step());
        mode.unwrap_or(SkipMode::Fail)
    }

    /// Also when the condition can't be read.
    pub(crate) fn is_conditional(&self) -> bool {
        if self.is_end_step() {
            return false;
        }
        self.args.key("if").is_some() || self.args.key("if_not").is_some()
    }

    /// Returns `true` if a failed element is `None` for the dependents of this map.
    pub(crate) fn is_tolerant(&self) -> bool {
        self.map.is_some() && self.args.on_element_failure == Some(ElementFailure::Null)
    }

    /// The mode as the rules are to judge it: of a step whose `map` leads nowhere, it is no mistake
    /// more.
    pub(crate) fn on_element_failure(&self) -> ElementFailure {
        let is_of_elements = matches!(self.map, Some(MapOver::Input(_) | MapOver::Step(..)));
        match self.args.on_element_failure {
            Some(mode) if is_of_elements || self.args.key("map").is_none() => mode,
            _ => ElementFailure::Fail,
        }
    }

    pub(crate) fn skip_rule(&self) -> SkipRule {
        SkipRule {
            conditional: self.is_conditional(),
            when_unmet: self.when_unmet(),
            when_exhausted: self.when_exhausted(),
        }
    }
}
