//! The flow as a whole.

use std::collections::HashMap;

use pgflow_definition::{graph, skip};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{LitStr, Type, ext::IdentExt, spanned::Spanned};

use super::{Edge, Step, param::Scope, scope::Surroundings, types};
use crate::{
    names,
    parse::{FlowArgs, FlowImpl, Pattern},
};

pub(crate) struct Flow<'s> {
    pub(crate) args: &'s FlowArgs,
    /// The flow's type, as written.
    pub(crate) self_ty: TokenStream,
    pub(crate) input: Option<Type>,
    pub(crate) state: Option<Type>,
    /// The last name of that type.
    pub(crate) ident: Ident,
    pub(crate) slug: String,
    pub(crate) step_enum: Ident,
    pub(crate) output: Ident,
    pub(crate) clash: Clash,
    /// `true` if the `impl` has parameters. That is a mistake; of such a flow there is only the
    /// enum of steps.
    pub(crate) is_generic: bool,
    /// The path of the facade crate.
    pub(crate) krate: TokenStream,
    /// The names of functions that are no steps.
    pub(crate) functions: Vec<String>,
    /// In the order in which they are written.
    pub(crate) steps: Vec<Step<'s>>,
    /// Indexes of the steps in the order of the definition.
    pub(crate) order: Vec<usize>,
    /// By index of the step.
    pub(crate) skips: Vec<Skips>,
}

/// Names that were chosen, or are the default, and stand for something else already; other ones are
/// used instead.
#[derive(Default)]
pub(crate) struct Clash {
    pub(crate) step_enum: Option<Ident>,
    pub(crate) output: Option<Ident>,
}

/// The steps that run without another step's output.
#[derive(Clone, Copy)]
pub(crate) struct Skips {
    /// Its dependents may run without.
    pub(crate) leaves_dependents_without: bool,
    /// Its dependents may be skipped with it.
    pub(crate) cascades: bool,
    /// The step itself may be skipped, by itself or with an ancestor.
    pub(crate) may_be_skipped: bool,
}

impl<'s> Flow<'s> {
    pub(crate) fn read(args: &'s FlowArgs, source: &'s FlowImpl) -> Self {
        let self_ty = source.self_ty.to_token_stream();
        let ident = type_name(&source.self_ty);
        let name = ident.unraw().to_string();

        let mut steps = steps(source, &self_ty);
        let (step_enum, output, clash) = type_names(args, &ident);
        let surroundings = Surroundings::of(source, &ident, &step_enum);
        let edges: Vec<_> = steps
            .iter()
            .map(|step| surroundings.edges(step, &steps))
            .collect();
        for (step, (edges, map)) in steps.iter_mut().zip(edges) {
            step.edges = edges;
            step.map = map;
        }
        conditions(&mut steps);
        let skips = skips(&steps);
        bind(&mut steps, args, &self_ty, &surroundings.unreadable, &skips);

        let outside = |ty: &Option<Type>| ty.as_ref().map(|ty| types::without_self(ty, &self_ty));
        Self {
            slug: args
                .slug
                .as_ref()
                .map_or_else(|| names::slug(&name), LitStr::value),
            step_enum,
            output,
            clash,
            is_generic: !source.generics.params.is_empty(),
            krate: args
                .krate
                .as_ref()
                .map_or_else(|| quote!(::pgflow), ToTokens::to_token_stream),
            order: order(&steps),
            skips,
            input: outside(&args.input),
            state: outside(&args.state),
            args,
            self_ty,
            ident,
            functions: surroundings.functions,
            steps,
        }
    }

    /// Returns the place at which a mistake of the slug is shown.
    pub(crate) fn slug_span(&self) -> Span {
        let literal = self.args.slug.as_ref().map(LitStr::span);
        literal.unwrap_or_else(|| self.ident.span())
    }

    /// The steps of the generated code with their indexes, in the order of the definition.
    pub(crate) fn emitted(&self) -> impl Iterator<Item = (usize, &Step<'s>)> + Clone {
        let steps = self.order.iter().map(|&index| (index, &self.steps[index]));
        steps.filter(|(_, step)| step.same_variant.is_none())
    }

    /// Returns `true` if no step depends on this one, and it is no end step: its output is a part
    /// of the flow's. Edges of a cycle, reported elsewhere, don't count, so that code that uses the
    /// output goes on compiling.
    pub(crate) fn is_leaf(&self, index: usize) -> bool {
        let mut steps = self.steps.iter().enumerate();
        // A run has its output before its end steps run.
        !self.steps[index].is_end_step()
            && !steps.any(|(dependent, step)| {
                let mut edges = step.edges.iter();
                edges.any(|edge| edge.meant() == Some(index)) && !self.waits_for(index, dependent)
            })
    }

    /// Returns whether a step depends on another one, directly or by way of others.
    fn waits_for(&self, step: usize, other: usize) -> bool {
        let mut seen = vec![false; self.steps.len()];
        let mut ahead = vec![step];
        while let Some(next) = ahead.pop() {
            for dependency in self.steps[next].edges.iter().filter_map(Edge::meant) {
                if dependency == other {
                    return true;
                }
                if !std::mem::replace(&mut seen[dependency], true) {
                    ahead.push(dependency);
                }
            }
        }
        false
    }

    /// The type that dependents take: a map step is stored element by element and read as a list.
    pub(crate) fn output_type(&self, step: usize) -> Option<TokenStream> {
        let step = &self.steps[step];
        let ok = &step.output.as_ref().ok()?.ok;
        Some(match step.map {
            Some(_) if step.is_tolerant() => {
                quote!(::std::vec::Vec<::core::option::Option<#ok>>)
            }
            Some(_) => quote!(::std::vec::Vec<#ok>),
            None => ok.to_token_stream(),
        })
    }
}

/// The enum of steps, and the output struct.
fn type_names(args: &FlowArgs, flow: &Ident) -> (Ident, Ident, Clash) {
    let named = |what: &str| format_ident!("{}{what}", flow.unraw(), span = Span::call_site());
    let mut clash = Clash::default();
    let mut step_enum = args
        .step_enum
        .clone()
        .unwrap_or_else(|| Ident::new("Step", flow.span()));
    if step_enum == *flow {
        clash.step_enum = Some(step_enum);
        step_enum = named("Step");
    }
    if args.step_enum.is_none() {
        step_enum.set_span(Span::call_site());
    }
    let mut output = args.output.clone().unwrap_or_else(|| named("Output"));
    if output == *flow || output == step_enum {
        clash.output = Some(output);
        output = named("Output");
    }
    (step_enum, output, clash)
}

fn type_name(self_ty: &Type) -> Ident {
    let last = match types::bare(self_ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    };
    match last {
        Some(segment) => segment.ident.clone(),
        None => Ident::new("Unnamed", self_ty.span()),
    }
}

fn steps<'s>(source: &'s FlowImpl, self_ty: &TokenStream) -> Vec<Step<'s>> {
    let mut steps: Vec<Step<'s>> = Vec::new();
    for function in source.steps() {
        let mut step = Step::read(function, self_ty);
        // Two functions of one name are an error of rustc's.
        if steps.iter().any(|earlier| earlier.name == step.name) {
            continue;
        }
        step.same_variant = steps
            .iter()
            .position(|earlier| earlier.variant == step.variant);
        steps.push(step);
    }
    steps
}

/// A condition names dependencies by their functions; the database knows their slugs.
fn conditions(steps: &mut [Step<'_>]) {
    let slugs: HashMap<String, String> = steps
        .iter()
        .map(|step| (step.name.clone(), step.slug.clone()))
        .collect();
    for step in steps.iter_mut().filter(|step| !step.is_end_step()) {
        let is_root = step.edges.is_empty();
        let json = |pattern: &Pattern| {
            let json = pattern.json(|key| match slugs.get(key) {
                Some(slug) if !is_root => slug,
                _ => key,
            });
            json.text()
        };
        step.required = step.args.required.as_ref().map(json);
        step.forbidden = step.args.forbidden.as_ref().map(json);
    }
}

fn bind(
    steps: &mut [Step<'_>],
    args: &FlowArgs,
    self_ty: &TokenStream,
    unreadable: &[String],
    skips: &[Skips],
) {
    let skippable = |(step, skips): (&Step<'_>, &Skips)| {
        let output = step.output.as_ref().ok()?;
        let ok = (step.map.is_none() && skips.leaves_dependents_without).then_some(&output.ok)?;
        types::is_option(ok).then(|| types::option_depth(ok))
    };
    let optional: Vec<Option<usize>> = steps.iter().zip(skips).map(skippable).collect();
    let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
    let has_output: Vec<bool> = steps.iter().map(|step| step.output.is_ok()).collect();
    for step in steps {
        let scope = Scope {
            args,
            self_ty,
            names: &names,
            has_output: &has_output,
            skippable_options: &optional,
            unreadable,
            edges: &step.edges,
            has_unreadable_edges: if step.is_end_step() {
                step.args.key("depends_on").is_some() || step.args.key("map").is_some()
            } else {
                step.args.depends_on.is_none()
                    && (step.args.key("depends_on").is_some() || step.args.keys.has_unknown)
            },
            has_no_edges: matches!(step.args.depends_on.as_deref(), Some([])),
            map: step.map,
            is_end_step: step.is_end_step(),
        };
        step.params = scope.params(step.source);
    }
}

/// Stable topological order; as written when there is a cycle.
fn order(steps: &[Step<'_>]) -> Vec<usize> {
    let graph = graph(steps, Edge::step);
    graph::topological_order(&graph).unwrap_or_else(|| (0..steps.len()).collect())
}

fn skips(steps: &[Step<'_>]) -> Vec<Skips> {
    let graph = graph(steps, Edge::meant);
    let rules: Vec<_> = steps.iter().map(Step::skip_rule).collect();
    let may_be_skipped = skip::may_be_skipped(&graph, &rules);
    let skips = rules.iter().zip(may_be_skipped);
    skips
        .map(|(rule, may_be_skipped)| Skips {
            leaves_dependents_without: rule.leaves_dependents_without(),
            cascades: rule.cascades(),
            may_be_skipped,
        })
        .collect()
}

/// Builds the graph of dependencies, without steps that name themselves.
fn graph(steps: &[Step<'_>], target: impl Fn(&Edge) -> Option<usize>) -> Vec<Vec<usize>> {
    let dependencies = |(index, step): (usize, &Step<'_>)| {
        let targets = step.edges.iter().filter_map(&target);
        targets.filter(|target| *target != index).collect()
    };
    steps.iter().enumerate().map(dependencies).collect()
}
