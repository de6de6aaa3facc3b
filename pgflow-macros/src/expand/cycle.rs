//! The error for steps that wait for each other.
//!
//! A procedural macro can underline one place for each error. An unmet bound can have more: rustc shows each implementation on the
//! way to it. So there is a type for each step of the cycle, and a trait for what it waits for, which it implements if the next step
//! implements its own. The last step would need the first; that is the one error, with each name underlined.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::{check::Cycle, model::Flow};

pub(super) fn check(flow: &Flow<'_>, cycle: &Cycle) -> TokenStream {
    let links: Vec<Link> = links(flow, cycle).collect();
    let [first, rest @ ..] = &links[..] else {
        return TokenStream::new();
    };
    let [.., last] = rest else {
        return TokenStream::new();
    };
    let types = rest.iter().map(Link::items);
    let conditional = rest.windows(2).map(|pair| pair[0].starts_if(&pair[1]));
    // The text of an attribute is a format string, and a slug that is refused may hold anything.
    let message = cycle.message.replace('{', "{{").replace('}', "}}");
    let impossible = last.never_starts(&message, &first.label);
    let start = first.start(&rest[0]);
    quote! {
        const _: () = {
            #(#types)*
            #(#conditional)*
            #impossible
            #start
        };
    }
}

/// A step, and the name by which it mentions the next one: all that is said of them stands at that name.
struct Link {
    label: String,
    step: Ident,
    next: Ident,
    /// The trait of a step that can start after the next one.
    trait_name: Ident,
    at: Span,
}

fn links<'m>(flow: &'m Flow<'_>, cycle: &'m Cycle) -> impl Iterator<Item = Link> {
    let followers = cycle.edges.iter().cycle().skip(1);
    let pairs = cycle.edges.iter().zip(followers);
    pairs.map(|((step, at), (next, _))| {
        let at = at.span();
        let (step, next) = (&flow.steps[*step].name, &flow.steps[*next].name);
        Link {
            label: format!("`{step}` waits for `{next}`"),
            // Names that are found once in most programs, so that rustc shows them without a path.
            step: format_ident!("step_{step}", span = at),
            next: format_ident!("step_{next}", span = at),
            trait_name: format_ident!("can_start_after_{next}", span = at),
            at,
        }
    })
}

impl Link {
    fn items(&self) -> TokenStream {
        let Self { step, .. } = self;
        quote_spanned!(self.at=> struct #step;)
    }

    fn starts_if(&self, next: &Self) -> TokenStream {
        let Self {
            step,
            trait_name,
            at,
            ..
        } = self;
        let (condition, next_step) = (&next.trait_name, &self.next);
        let mut condition = condition.clone();
        condition.set_span(*at);
        // With a binder, rustc does not look at the condition before somebody asks for the implementation.
        quote_spanned! {*at=>
            trait #trait_name {}
            impl #trait_name for #step where for<'a> #next_step: #condition {}
        }
    }

    fn never_starts(&self, message: &str, label: &str) -> TokenStream {
        let (trait_name, at) = (&self.trait_name, self.at);
        // The blanket implementation keeps rustc from proposing that somebody write one.
        quote_spanned! {at=>
            trait never {}
            #[diagnostic::on_unimplemented(message = #message, label = #label)]
            trait #trait_name {}
            #[diagnostic::do_not_recommend]
            impl<T: never> #trait_name for T {}
        }
    }

    /// Asks whether the step after this one can start.
    fn start(&self, after: &Self) -> TokenStream {
        let Self { next, at, .. } = self;
        let mut bound = after.trait_name.clone();
        bound.set_span(*at);
        quote_spanned! {*at=>
            fn the_steps_of_a_cycle_start<T: #bound>() {}
            fn check() { the_steps_of_a_cycle_start::<#next>() }
        }
    }
}
