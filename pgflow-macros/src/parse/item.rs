//! The items of the `impl` block.
//!
//! Signatures are read by syn, and bodies stay as they are, so that a half-written one is rustc's
//! business alone.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Path, Signature, Token, Visibility,
    ext::IdentExt,
    parse::{ParseStream, discouraged::Speculative},
    token::{Brace, Bracket},
};

use super::{StepFn, delimited::group, misspelt, repair, step_attr};

pub(crate) enum Item {
    Step(Box<StepFn>),
    /// Something that can't be read. It is emitted in a block of its own.
    Unreadable {
        name: Option<Ident>,
        kind: UnreadableKind,
        tokens: TokenStream,
    },
    /// Anything else, unchanged.
    Other(Other),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadableKind {
    /// Not a function, but marked `#[step]`.
    NotAFunction,
    /// rustc reports the syntax error.
    BadSyntax,
}

pub(crate) struct Other {
    pub(crate) kind: OtherKind,
    pub(crate) tokens: TokenStream,
}

#[derive(PartialEq, Eq)]
pub(crate) enum OtherKind {
    Function(Ident),
    Const(Ident),
    Type,
    /// It may write any items.
    MacroCall,
    /// Attributes of the block itself.
    Attributes,
}

impl Item {
    /// The function's name, for one that is no step.
    pub(crate) fn plain_function(&self) -> Option<&Ident> {
        match self {
            Self::Other(Other {
                kind: OtherKind::Function(name),
                ..
            }) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn constant(&self) -> Option<&Ident> {
        match self {
            Self::Other(Other {
                kind: OtherKind::Const(name),
                ..
            }) => Some(name),
            _ => None,
        }
    }
}

pub(super) fn all(input: ParseStream<'_>) -> syn::Result<Vec<Item>> {
    let mut items = Vec::new();
    let inner = input.call(Attribute::parse_inner)?;
    if !inner.is_empty() {
        items.push(Item::Other(Other {
            kind: OtherKind::Attributes,
            tokens: quote!(#(#inner)*),
        }));
    }
    let mut doubtful = Vec::new();
    while !input.is_empty() {
        let ahead = input.fork();
        match StepFn::parse(&ahead) {
            Some(step) if step.is_misspelt => {
                doubtful.push((items.len(), up_to(input, &ahead)?));
                items.push(Item::Step(Box::new(step)));
            }
            Some(step) => {
                input.advance_to(&ahead);
                items.push(Item::Step(Box::new(step)));
            }
            None => {
                let number = items.len();
                items.push(one(input, number)?);
            }
        }
    }
    misspelt::settle(&mut items, doubtful);
    Ok(items)
}

/// An item that is no step, or can't be read as one.
fn one(input: ParseStream<'_>, number: usize) -> syn::Result<Item> {
    let attrs = input
        .fork()
        .call(Attribute::parse_outer)
        .unwrap_or_default();
    let is_step = attrs.iter().any(step_attr::is_step);
    let ahead = input.fork();
    if let Ok(kind) = legal(&ahead) {
        let tokens = up_to(input, &ahead)?;
        if !is_step {
            return Ok(Item::Other(Other { kind, tokens }));
        }
        let (name, kind) = match kind {
            OtherKind::Function(name) => (Some(name), UnreadableKind::BadSyntax),
            _ => (None, UnreadableKind::NotAFunction),
        };
        let tokens = step_attr::removed(tokens);
        return Ok(Item::Unreadable { name, kind, tokens });
    }
    let tokens = illegal(input)?;
    if is_step && let Some(step) = repair::step(&tokens) {
        return Ok(Item::Step(Box::new(step)));
    }
    let tokens = step_attr::removed(without_empty_return(tokens));
    let name = function_name(&tokens);
    let tokens = if is_step {
        repair::with_name(&tokens, number)
    } else {
        tokens
    };
    let kind = if is_step && fn_token(&tokens).is_none() {
        UnreadableKind::NotAFunction
    } else {
        UnreadableKind::BadSyntax
    };
    Ok(Item::Unreadable { name, kind, tokens })
}

/// Goes to the end of an item of a form that an `impl` can hold.
fn legal(input: ParseStream<'_>) -> syn::Result<OtherKind> {
    input.call(Attribute::parse_outer)?;
    input.parse::<Visibility>()?;
    if input.peek(Token![default]) && !input.peek2(Token![!]) && !input.peek2(Token![::]) {
        input.parse::<Token![default]>()?;
    }
    let function = input.fork();
    if let Ok(signature) = function.parse::<Signature>() {
        input.advance_to(&function);
        body(input)?;
        return Ok(OtherKind::Function(signature.ident));
    }
    if input.parse::<Option<Token![const]>>()?.is_some() {
        let name = input.call(Ident::parse_any)?;
        to_semicolon(input)?;
        return Ok(OtherKind::Const(name));
    }
    if input.parse::<Option<Token![type]>>()?.is_some() {
        to_semicolon(input)?;
        return Ok(OtherKind::Type);
    }
    input.call(Path::parse_mod_style)?;
    input.parse::<Token![!]>()?;
    let is_block = input.peek(Brace);
    group(input)?;
    if !is_block {
        input.parse::<Token![;]>()?;
    }
    Ok(OtherKind::MacroCall)
}

/// The block of a function, or the `;` that rustc asks to replace by one.
pub(super) fn body(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    if input.peek(Brace) {
        return Ok(group(input)?.to_token_stream());
    }
    let semicolon: Token![;] = input.parse()?;
    Ok(semicolon.to_token_stream())
}

/// The braces in a value or a type are no end of it: only a `;` outside of all delimiters is.
fn to_semicolon(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.peek(Token![;]) {
        input.parse::<TokenTree>()?;
    }
    input.parse::<Token![;]>()?;
    Ok(())
}

/// The tokens from one place to another, which becomes the place of `input`.
fn up_to(input: ParseStream<'_>, end: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while input.cursor() < end.cursor() {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

/// Goes on behind something that is no item: where the next one seems to begin.
fn illegal(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let attrs = input.fork();
    let mut tokens = match attrs.call(Attribute::parse_outer) {
        Ok(_) => up_to(input, &attrs)?,
        Err(_) => TokenStream::new(),
    };
    while !input.is_empty() {
        let is_block = input.peek(Brace);
        let token: TokenTree = input.parse()?;
        let is_semicolon = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';');
        tokens.extend([token]);
        let is_end = is_semicolon
            || (is_block && begins_item(input))
            || (input.peek(Token![#]) && input.peek2(Bracket));
        if is_end {
            break;
        }
    }
    Ok(tokens)
}

/// Returns whether an item can begin here, or the block ends.
fn begins_item(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let is_named = |input: ParseStream<'_>| {
        input.peek(Token![fn])
            || input.peek(Token![async])
            || input.peek(Token![const])
            || input.peek(Token![unsafe])
            || input.peek(Token![extern])
            || input.peek(Token![type])
            || input.peek(Token![#])
    };
    let is_visible = |visibility: Visibility| !matches!(visibility, Visibility::Inherited);
    input.is_empty()
        || is_named(input)
        || ahead.parse().is_ok_and(is_visible)
        || (ahead.call(Path::parse_mod_style).is_ok() && ahead.peek(Token![!]))
}

/// Writes a return type where none stands between `->` and the body. rustc continues behind that
/// mistake, so that it has said what is wrong when a macro is asked; written out again it would be
/// said twice.
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
    if !is_arrow || body.delimiter() != proc_macro2::Delimiter::Brace {
        return item;
    }
    quote!(#(#tokens)* ! { ::core::unreachable!() })
}

/// Returns the tokens that follow the `fn`, if there is one.
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
