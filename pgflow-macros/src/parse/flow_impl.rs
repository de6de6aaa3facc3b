//! The `impl` block under `#[flow]`.

use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Generics, PathSegment, Token, Type,
    parse::{ParseStream, Parser},
};

use super::{
    Item, StepArgs, StepFn,
    delimited::group,
    item::{self, OtherKind},
    twice::{arguments, merged},
};
use crate::{errors::Errors, model::types::bare};

/// An `impl`.
pub(crate) struct FlowImpl {
    pub(crate) attrs: Vec<Attribute>,
    /// `#[flow(..)]` once more.
    again: Vec<Attribute>,
    pub(crate) generics: Generics,
    /// The trait that it implements, and the `for`: no flow does that.
    pub(crate) of_trait: Option<(Type, Token![for])>,
    pub(crate) self_ty: Type,
    pub(crate) items: Vec<Item>,
}

/// Types that are seen to be another crate's by their name.
const FOREIGN: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16",
    "u32", "u64", "u128", "usize", "Arc", "Box", "HashMap", "Option", "Rc", "Result", "String",
    "Vec",
];

const PLACE: &str = "`#[flow]` goes on the `impl` block that holds the steps:

    pub struct MyFlow;

    #[flow(input = MyInput)]
    impl MyFlow {
        #[step]
        async fn first(input: &MyInput) -> StepResult<Output> { .. }
    }";

impl FlowImpl {
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Self> {
        parse_impl.parse2(item)
    }

    /// Reads the arguments of each `#[step(..)]`, and reports what was wrong around its function.
    pub(crate) fn read_step_args(&mut self, errors: &mut Errors) {
        for item in &mut self.items {
            if let Item::Step(step) = item {
                step.args = StepArgs::parse(&step.attr, errors);
                for mistake in step.mistakes.drain(..) {
                    errors.push(mistake);
                }
            }
        }
    }

    /// The arguments of the attribute, together with those of a second one, which is reported.
    pub(crate) fn all_arguments(&self, first: TokenStream, errors: &mut Errors) -> TokenStream {
        self.again.iter().fold(first, |first, again| {
            errors.on(
                again,
                "`#[flow]` is given twice; write all arguments in one",
            );
            merged(first, arguments(again))
        })
    }

    /// Leaves the trait out, and with it the types that only a trait can have.
    pub(crate) fn make_inherent(&mut self) {
        if self.of_trait.take().is_some() {
            let is_type =
                |item: &Item| matches!(item, Item::Other(other) if other.kind == OtherKind::Type);
            self.items.retain(|item| !is_type(item));
        }
    }

    /// Calls of macros where there is no step: one of them was to write the steps.
    pub(crate) fn macros_for_steps(&self) -> impl Iterator<Item = &Item> {
        let has_steps = self.of_trait.is_some()
            || (self.items.iter()).any(|item| !matches!(item, Item::Other(_)));
        let is_call =
            |item: &&Item| matches!(item, Item::Other(other) if other.kind == OtherKind::MacroCall);
        let calls = self.items.iter().filter(is_call);
        calls.filter(move |_| !has_steps)
    }

    /// The last name of the type, where it can be one of the crate's own.
    pub(crate) fn own_type(&self) -> Option<&PathSegment> {
        let Type::Path(path) = bare(&self.self_ty) else {
            return None;
        };
        let segments = &path.path.segments;
        let last = segments.last()?;
        let is_std = segments.len() > 1 && segments[0].ident == "std";
        let is_foreign = is_std || FOREIGN.iter().any(|name| last.ident == name);
        (path.qself.is_none() && !is_foreign).then_some(last)
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &StepFn> {
        self.items.iter().filter_map(|item| match item {
            Item::Step(step) => Some(&**step),
            Item::Unreadable { .. } | Item::Other(_) => None,
        })
    }
}

fn is_flow(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|segment| segment.ident == "flow")
}

fn parse_impl(input: ParseStream<'_>) -> syn::Result<FlowImpl> {
    let attrs = input.call(Attribute::parse_outer)?;
    let (again, attrs) = attrs.into_iter().partition(is_flow);
    // rustc has said that such an `impl` is none before it asks a macro.
    input.parse::<Option<Token![default]>>()?;
    input.parse::<Option<Token![unsafe]>>()?;
    if !input.peek(Token![impl]) {
        let _rest: TokenStream = input.parse()?;
        return Err(syn::Error::new(Span::call_site(), PLACE));
    }
    input.parse::<Token![impl]>()?;
    let mut generics = if input.peek(Token![<]) {
        input.parse()?
    } else {
        Generics::default()
    };
    let mut self_ty: Type = input.parse()?;
    let mut of_trait = None;
    if let Some(token) = input.parse::<Option<Token![for]>>()? {
        of_trait = Some((self_ty, token));
        self_ty = input.parse()?;
    }
    generics.where_clause = input.parse()?;
    let body = group(input)?;
    let items = item::all.parse2(body.stream())?;
    Ok(FlowImpl {
        attrs,
        again,
        generics,
        of_trait,
        self_ty,
        items,
    })
}
