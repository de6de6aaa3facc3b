//! The `impl` block under `#[flow]`.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Generics, Path, PathSegment, Token, Type, Visibility,
    parse::{ParseStream, Parser, discouraged::Speculative},
};

use super::{StepArgs, StepFn};
use crate::errors::Errors;

/// An `impl`.
pub(crate) struct FlowImpl {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) generics: Generics,
    /// The trait that it implements, and the `for`: no flow does that.
    pub(crate) of_trait: Option<(Type, Token![for])>,
    pub(crate) self_ty: Type,
    pub(crate) items: Vec<Item>,
}

pub(crate) enum Item {
    Step(Box<StepFn>),
    /// Marked `#[step]`, but not a function that can be read.
    Unreadable {
        name: Option<Ident>,
        /// Whether it is a function: then rustc reports the syntax error.
        is_function: bool,
        tokens: TokenStream,
    },
    Other(TokenStream),
}

impl Item {
    fn is_type(&self) -> bool {
        let is_type = |tokens: ParseStream<'_>| {
            tokens.call(Attribute::parse_outer)?;
            tokens.parse::<Visibility>()?;
            let is_type = tokens.peek(Token![type]);
            let _rest: TokenStream = tokens.parse()?;
            Ok(is_type)
        };
        match self {
            Self::Other(tokens) => is_type.parse2(tokens.clone()).unwrap_or(false),
            Self::Step(_) | Self::Unreadable { .. } => false,
        }
    }

    /// Whether it is the call of a macro, which may write any items.
    fn is_macro_call(&self) -> bool {
        let is_call = |tokens: ParseStream<'_>| {
            tokens.call(Attribute::parse_outer)?;
            let is_call = tokens.call(Path::parse_mod_style).is_ok() && tokens.peek(Token![!]);
            let _rest: TokenStream = tokens.parse()?;
            Ok(is_call)
        };
        match self {
            Self::Other(tokens) => is_call.parse2(tokens.clone()).unwrap_or(false),
            Self::Step(_) | Self::Unreadable { .. } => false,
        }
    }

    /// The function's name, for one that is no step.
    pub(crate) fn plain_function(&self) -> Option<Ident> {
        match self {
            Self::Other(tokens) => function_name(tokens),
            Self::Step(_) | Self::Unreadable { .. } => None,
        }
    }
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

    /// Reads the arguments of each `#[step(..)]`.
    pub(crate) fn read_step_args(&mut self, errors: &mut Errors) {
        for item in &mut self.items {
            if let Item::Step(step) = item {
                step.args = StepArgs::parse(&step.attr, errors);
                for attr in &step.repeated {
                    errors.on(attr, "`#[step]` is given twice; write all arguments in one");
                }
            }
        }
    }

    /// Leaves the trait out, and with it the types that only a trait can have.
    pub(crate) fn make_inherent(&mut self) {
        if self.of_trait.take().is_some() {
            self.items.retain(|item| !item.is_type());
        }
    }

    /// Calls of macros where there is no step: one of them was to write the steps.
    pub(crate) fn macros_for_steps(&self) -> impl Iterator<Item = &Item> {
        let has_steps = self.of_trait.is_some()
            || (self.items.iter()).any(|item| !matches!(item, Item::Other(_)));
        let calls = self.items.iter().filter(|item| item.is_macro_call());
        calls.filter(move |_| !has_steps)
    }

    /// The last name of the type, where it can be one of the crate's own.
    pub(crate) fn own_type(&self) -> Option<&PathSegment> {
        let Type::Path(path) = &self.self_ty else {
            return None;
        };
        let last = path.path.segments.last()?;
        let is_foreign = FOREIGN.iter().any(|name| last.ident == name);
        (path.qself.is_none() && !is_foreign).then_some(last)
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &StepFn> {
        self.items.iter().filter_map(|item| match item {
            Item::Step(step) => Some(&**step),
            Item::Unreadable { .. } | Item::Other(_) => None,
        })
    }
}

fn parse_impl(input: ParseStream<'_>) -> syn::Result<FlowImpl> {
    let attrs = input.call(Attribute::parse_outer)?;
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
    let body: Group = input.parse()?;
    let items = items.parse2(body.stream())?;
    Ok(FlowImpl {
        attrs,
        generics,
        of_trait,
        self_ty,
        items,
    })
}

fn items(input: ParseStream<'_>) -> syn::Result<Vec<Item>> {
    let mut items = Vec::new();
    let inner = input.call(Attribute::parse_inner)?;
    if !inner.is_empty() {
        items.push(Item::Other(quote!(#(#inner)*)));
    }
    while !input.is_empty() {
        items.push(item(input)?);
    }
    Ok(items)
}

fn item(input: ParseStream<'_>) -> syn::Result<Item> {
    let fork = input.fork();
    if let Some(step) = StepFn::parse(&fork) {
        input.advance_to(&fork);
        return Ok(Item::Step(Box::new(step)));
    }
    let attrs = input
        .fork()
        .call(Attribute::parse_outer)
        .unwrap_or_default();
    if !attrs.iter().any(|attr| is_step(attr.path())) {
        return raw_item(input).map(Item::Other);
    }
    let mut attrs = input.call(Attribute::parse_outer)?;
    attrs.retain(|attr| !is_step(attr.path()));
    let rest = without_empty_return(raw_item(input)?);
    Ok(Item::Unreadable {
        name: function_name(&rest),
        is_function: fn_token(&rest).is_some(),
        tokens: quote!(#(#attrs)* #rest),
    })
}

pub(super) fn is_step(path: &Path) -> bool {
    path.segments
        .last()
        .is_some_and(|segment| segment.ident == "step")
}

/// Everything up to the first `;`, or the first `{ .. }` that is not a part of a value.
fn raw_item(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    let mut in_value = false;
    while !input.is_empty() {
        let token: TokenTree = input.parse()?;
        let is_end = match &token {
            TokenTree::Punct(punct) => {
                in_value |= punct.as_char() == '=';
                punct.as_char() == ';'
            }
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !in_value,
            TokenTree::Ident(_) | TokenTree::Literal(_) => false,
        };
        token.to_tokens(&mut tokens);
        if is_end {
            break;
        }
    }
    Ok(tokens)
}

/// Writes a return type where none stands between `->` and the body. rustc goes on behind that mistake, so that it has said what is
/// wrong when a macro is asked; written out again it would be said twice.
fn without_empty_return(item: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.clone().into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return item;
    };
    let is_arrow = match &tokens[..] {
        [.., TokenTree::Punct(minus), TokenTree::Punct(greater)] => {
            minus.as_char() == '-' && greater.as_char() == '>'
        }
        _ => false,
    };
    if !is_arrow || body.delimiter() != Delimiter::Brace {
        return item;
    }
    quote!(#(#tokens)* ! { ::core::unreachable!() })
}

/// What follows the `fn`, if there is one.
fn fn_token(tokens: &TokenStream) -> Option<impl Iterator<Item = TokenTree> + use<>> {
    let mut tokens = tokens.clone().into_iter();
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == "fn");
    tokens.find(is_fn).map(|_| tokens)
}

fn function_name(tokens: &TokenStream) -> Option<Ident> {
    match fn_token(tokens)?.next()? {
        TokenTree::Ident(name) => Some(name),
        _ => None,
    }
}
