//! The targets of the names of steps.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;

use super::{Edge, Link, MapOver, Step};
use crate::{
    names,
    parse::{FlowImpl, Item, Mention, UnreadableKind},
};

/// All that can be named in one flow, apart from its steps.
pub(super) struct Surroundings {
    /// Functions that are no steps.
    pub(super) functions: Vec<String>,
    pub(super) constants: Vec<String>,
    /// Steps that can't be read.
    pub(super) unreadable: Vec<String>,
    /// `true` if the name of one of those is missing: it may be any that is unknown.
    pub(super) has_unnamed: bool,
    /// The beginnings of a path to a step: the flow, or the enum of its steps.
    pub(super) qualifiers: Vec<String>,
}

impl Surroundings {
    pub(super) fn of(source: &FlowImpl, flow: &Ident, step_enum: &Ident) -> Self {
        let named = |names: Vec<&Ident>| -> Vec<String> {
            names.iter().map(|name| name.unraw().to_string()).collect()
        };
        let items = source.items.iter();
        let has_unnamed = (items.clone()).any(|item| {
            matches!(
                item,
                Item::Unreadable {
                    name: None,
                    kind: UnreadableKind::BadSyntax,
                    ..
                }
            )
        });
        let unreadable = items.clone().filter_map(|item| match item {
            Item::Unreadable { name, .. } => name.as_ref(),
            Item::Step(_) | Item::Other(_) => None,
        });
        Self {
            functions: named(items.clone().filter_map(Item::plain_function).collect()),
            constants: named(items.clone().filter_map(Item::constant).collect()),
            unreadable: named(unreadable.collect()),
            has_unnamed,
            qualifiers: vec![
                "Self".to_owned(),
                "Step".to_owned(),
                flow.unraw().to_string(),
                step_enum.unraw().to_string(),
                format!("{}Step", flow.unraw()),
            ],
        }
    }

    /// The edges of a step, and what it maps over.
    pub(super) fn edges(
        &self,
        step: &Step<'_>,
        steps: &[Step<'_>],
    ) -> (Vec<Edge>, Option<MapOver>) {
        // That an end step names any is the mistake.
        if step.is_end_step() {
            return (Vec::new(), None);
        }
        let Some(source) = &step.args.map else {
            if step.args.key("map").is_some() {
                return (Vec::new(), Some(MapOver::Nothing));
            }
            let names = step.args.depends_on.iter().flatten();
            let edges = names.map(|mention| self.edge(mention, step, steps));
            let mut edges = edges.collect::<Vec<Edge>>();
            give_untaken(&mut edges, step, steps);
            return (edges, None);
        };
        let edge = self.edge(source, step, steps);
        let at = source.name.span();
        match edge.meant() {
            Some(index) => (vec![edge], Some(MapOver::Step(index, at))),
            None if source.name == "input" => (Vec::new(), Some(MapOver::Input(at))),
            None => (vec![edge], Some(MapOver::Nothing)),
        }
    }

    fn edge(&self, mention: &Mention, step: &Step<'_>, steps: &[Step<'_>]) -> Edge {
        let Some(index) = self.resolve(mention, steps) else {
            return Edge {
                at: mention.name.clone(),
                written: (!mention.is_settled).then(|| mention.written.clone()),
                link: self.elsewhere(mention, step, steps),
                taken: None,
            };
        };
        let mut at = steps[index].ident.clone();
        at.set_span(mention.name.span());
        let is_function = mention.name.unraw() == steps[index].name;
        let written: Option<TokenStream> = if !is_function {
            Some(mention.written.clone())
        } else if mention.is_settled {
            // Raw or not, as it was written.
            at = mention.name.clone();
            None
        } else {
            Some(mention.written.clone())
        };
        let link = if steps[index].name == step.name {
            Link::Itself(index)
        } else {
            Link::Step(index)
        };
        Edge {
            at,
            written,
            link,
            taken: None,
        }
    }

    /// The step that is named by its function, its slug or its variant.
    fn resolve(&self, mention: &Mention, steps: &[Step<'_>]) -> Option<usize> {
        if self.is_outside(mention) {
            return None;
        }
        let name = mention.name.unraw().to_string();
        let function = mention.function_name().unraw().to_string();
        let named = |name: &str| steps.iter().position(|step| step.name == name);
        let is_taken = |names: &[String]| names.contains(&name);
        if let Some(index) = named(&name) {
            return Some(index);
        }
        if is_taken(&self.unreadable) || is_taken(&self.functions) || is_taken(&self.constants) {
            return None;
        }
        named(&function)
            .or_else(|| steps.iter().position(|step| step.variant == name))
            .or_else(|| steps.iter().position(|step| step.slug == name))
    }

    /// Returns whether a path leads to another type.
    fn is_outside(&self, mention: &Mention) -> bool {
        mention.qualifier.as_ref().is_some_and(|qualifier| {
            let qualifier = qualifier.unraw().to_string();
            qualifier.starts_with(char::is_uppercase) && !self.qualifiers.contains(&qualifier)
        })
    }

    /// For a name that leads to no step.
    fn elsewhere(&self, mention: &Mention, step: &Step<'_>, steps: &[Step<'_>]) -> Link {
        if self.is_outside(mention) {
            return Link::Outside;
        }
        let name = mention.name.unraw().to_string();
        if self.unreadable.contains(&name) {
            return Link::Unreadable;
        }
        if self.functions.contains(&name) {
            return Link::NotAStep;
        }
        if self.constants.contains(&name) {
            return Link::Constant;
        }
        let is_word = ["input", "state", "ctx", "item"].contains(&name.as_str());
        let listed = step.args.depends_on.iter().flatten();
        let is_listed = |other: &str| listed.clone().any(|mention| mention.name == other);
        let others = steps
            .iter()
            .map(|other| other.name.as_str())
            .filter(|other| *other != step.name && !is_listed(other));
        let similar = names::nearest(&name, others).filter(|_| !is_word);
        if similar.is_none() && self.has_unnamed && !is_word {
            return Link::Unreadable;
        }
        Link::Unknown {
            similar: similar.and_then(|name| steps.iter().position(|step| step.name == name)),
        }
    }
}

/// Gives names that lead to no step of use what parameters take and no name lists: a wrong name is
/// one mistake, and its parameter none.
fn give_untaken(edges: &mut [Edge], step: &Step<'_>, steps: &[Step<'_>]) {
    let takes = |index: usize| {
        let mut names = step.source.taken_names();
        names.any(|name| name == steps[index].name)
    };
    let listed: Vec<usize> = edges.iter().filter_map(Edge::meant).collect();
    let is_untaken = |index: &usize| steps[*index].name != step.name && !listed.contains(index);
    let mut untaken = (step.source.taken_names())
        .filter_map(|name| steps.iter().position(|other| other.name == name))
        .filter(is_untaken);
    for position in 0..edges.len() {
        let link = edges[position].link;
        let is_of_use = match link {
            Link::Step(_) => !edges[..position].iter().any(|edge| edge.link == link),
            Link::Unknown { similar } => similar.is_some_and(takes),
            Link::Unreadable => true,
            Link::Itself(_) | Link::NotAStep | Link::Constant | Link::Outside => false,
        };
        if !is_of_use {
            edges[position].taken = untaken.next();
        }
    }
}
