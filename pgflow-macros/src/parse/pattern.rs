//! The object literals of `if` and `if_not`: JSON with names as keys, as in JavaScript.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    BinOp, Expr, Lit, LitFloat, LitInt, LitStr, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    token::{Brace, Bracket},
};

use super::{delimited::group, json::Json, value};
use crate::{errors::Errors, model::types::show};

/// A condition.
pub(crate) struct Pattern {
    /// `if` or `if_not`.
    pub(crate) argument: Ident,
    pub(crate) entries: Vec<Entry>,
}

/// A key of the object itself, and its value.
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Span,
    value: Json,
}

impl Pattern {
    /// The object as JSON; `rename` says what a key is called in the database.
    pub(crate) fn json<'k>(&'k self, rename: impl Fn(&'k str) -> &'k str) -> Json {
        let entries = self.entries.iter();
        let renamed = entries.map(|entry| (rename(&entry.key).to_owned(), entry.value.clone()));
        Json::Object(renamed.collect())
    }

    /// A pattern that can't be read is reported and then taken as empty: the step still has a
    /// condition.
    pub(super) fn parse(
        argument: &Ident,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<Self> {
        value::equals(argument, input, "{ plan: \"premium\" }")?;
        let mut pattern = Self {
            argument: argument.clone(),
            entries: Vec::new(),
        };
        if !input.peek(Brace) {
            let written = value::whole(input)?;
            let message = not_an_object(&argument.unraw().to_string(), &written);
            errors.on(written, message);
            return Ok(pattern);
        }
        let object = group(input)?;
        match entries.parse2(object.stream()) {
            Ok(entries) if entries.is_empty() => {
                let message = empty(&argument.unraw().to_string());
                errors.at(object.span(), message);
            }
            Ok(entries) => pattern.entries = entries,
            Err(error) => errors.push(error),
        }
        Ok(pattern)
    }
}

fn empty(argument: &str) -> String {
    let effect = if argument == "if" {
        "holds for every run"
    } else {
        "never lets the step run"
    };
    format!(
        "`{argument} = {{}}` {effect}: every object contains an empty one; name a key, as in `{argument} = {{ plan: \"premium\" }}`, or \
         remove `{argument}`"
    )
}

const CONTAINMENT: &str = "a condition holds when the JSON contains an object, so it tests for equal values only; compare in a step that returns \
                           the answer, and test that, as in `{ is_large: true }`";

/// An expression in place of an object.
fn not_an_object(argument: &str, written: &TokenStream) -> String {
    if value::is_constant(written) {
        return format!(
            "`{argument}` takes an object, and the macro can't see the value of `{}`; write the object itself, as in `{argument} = {{ plan: \
             \"premium\" }}`",
            show(written)
        );
    }
    let opposite = if argument == "if" { "if_not" } else { "if" };
    let proposal = |argument: &str, key: &Expr, value: &dyn ToTokens| {
        let object = nested(key, &show(&value.to_token_stream()))?;
        Some(format!(
            "`{argument}` takes an object, not an expression; write `{argument} = {object}`"
        ))
    };
    let expr = syn::parse2::<Expr>(written.clone());
    let help = match &expr {
        Ok(Expr::Binary(binary)) => match (&binary.op, literal(&binary.right)) {
            (BinOp::Eq(_), Some(value)) => proposal(argument, &binary.left, &value),
            (BinOp::Ne(_), Some(value)) => proposal(opposite, &binary.left, &value),
            (BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_), _) => Some(format!(
                "`{argument}` takes an object, not an expression: {CONTAINMENT}"
            )),
            _ => None,
        },
        Ok(Expr::Unary(unary)) if matches!(unary.op, syn::UnOp::Not(_)) => {
            proposal(opposite, &unary.expr, &quote!(true))
        }
        Ok(field @ Expr::Field(_)) => proposal(argument, field, &quote!(true)),
        _ => None,
    };
    help.unwrap_or_else(|| {
        format!("`{argument}` takes an object, such as `{argument} = {{ plan: \"premium\" }}`")
    })
}

/// A value that can stand in an object.
fn literal(expr: &Expr) -> Option<TokenStream> {
    let tokens = expr.to_token_stream();
    let is_value = |input: ParseStream<'_>| value_of(input, Span::call_site());
    is_value.parse2(tokens.clone()).ok().map(|_| tokens)
}

/// `{ user: { plan: value } }` of `input.user.plan`.
fn nested(expr: &Expr, value: &str) -> Option<String> {
    match expr {
        Expr::Path(path) => {
            let name = path.path.get_ident()?;
            (name != "input").then(|| format!("{{ {name}: {value} }}"))
        }
        Expr::Field(field) => {
            let syn::Member::Named(name) = &field.member else {
                return None;
            };
            let object = format!("{{ {name}: {value} }}");
            match &*field.base {
                Expr::Path(path) if path.path.is_ident("input") => Some(object),
                base => nested(base, &object),
            }
        }
        _ => None,
    }
}

const VALUE: &str =
    "expected a JSON value: a string, a number, `true`, `false`, `null`, `[..]` or `{ .. }`";

fn entries(object: ParseStream<'_>) -> syn::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    while !object.is_empty() {
        let (key, at) = key(object)?;
        if entries.iter().any(|other| other.key == key) {
            return Err(syn::Error::new(
                at,
                format!("key `{key}` is given twice; keep one of them"),
            ));
        }
        colon(object, &key, at)?;
        let value = value_of(object, at)?;
        comma(object, "the entries of an object")?;
        entries.push(Entry { key, at, value });
    }
    Ok(entries)
}

fn key(object: ParseStream<'_>) -> syn::Result<(String, Span)> {
    if object.peek(LitStr) {
        let literal: LitStr = object.parse()?;
        return Ok((string(&literal)?, literal.span()));
    }
    let key = object
        .call(Ident::parse_any)
        .map_err(|error| syn::Error::new(error.span(), "a key is a name or a string"))?;
    Ok((key.unraw().to_string(), key.span()))
}

fn colon(object: ParseStream<'_>, key: &str, after: Span) -> syn::Result<()> {
    if object.peek(Token![:]) && !object.peek(Token![::]) {
        object.parse::<Token![:]>()?;
        return Ok(());
    }
    let at = if object.is_empty() {
        after
    } else {
        object.span()
    };
    let is_equality = object.peek(Token![=]) && !object.peek(Token![=>]);
    let message = if object.peek(Token![<]) || object.peek(Token![>]) {
        format!("`{key}` can't be compared: {CONTAINMENT}")
    } else if object.peek(Token![!=]) {
        format!(
            "`{key}` can't be compared: what must not be goes into the other condition, as in `if_not = {{ {key}: .. }}`"
        )
    } else if object.peek(Token![.]) {
        format!("what is in `{key}` is an object too; write `{key}: {{ .. }}`")
    } else if is_equality {
        let rest: TokenStream = object.parse()?;
        let value = show(&rest);
        let value = value.trim_start_matches(['=', ' ']).split(',').next();
        let value = value.unwrap_or("..");
        format!("expected `:` after the key `{key}`; write `{key}: {value}`")
    } else {
        format!("expected `:` after the key `{key}`")
    };
    Err(syn::Error::new(at, message))
}

/// A comma or the end.
fn comma(input: ParseStream<'_>, between: &str) -> syn::Result<()> {
    if input.is_empty() || input.parse::<Option<Token![,]>>()?.is_some() {
        return Ok(());
    }
    Err(syn::Error::new(
        input.span(),
        format!("expected `,` between {between}"),
    ))
}

/// `after` is where an absent value is reported.
fn value_of(input: ParseStream<'_>, after: Span) -> syn::Result<Json> {
    if input.is_empty() {
        return Err(syn::Error::new(after, VALUE));
    }
    if input.peek(Brace) {
        let entries = entries.parse2(group(input)?.stream())?.into_iter();
        return Ok(Json::Object(
            entries.map(|entry| (entry.key, entry.value)).collect(),
        ));
    }
    if input.peek(Bracket) {
        let list = group(input)?;
        let elements = |elements: ParseStream<'_>| {
            let mut values = Vec::new();
            while !elements.is_empty() {
                values.push(value_of(elements, list.span())?);
                comma(elements, "the elements of an array")?;
            }
            Ok(values)
        };
        return elements.parse2(list.stream()).map(Json::Array);
    }
    let ahead = input.fork();
    if let Ok(word) = ahead.call(Ident::parse_any) {
        return self::word(input, &word);
    }
    let at = input.span();
    if input.peek(Token![<]) || input.peek(Token![>]) {
        return Err(syn::Error::new(at, CONTAINMENT));
    }
    if input.peek(Token![-]) {
        input.parse::<Token![-]>()?;
        let literal: Lit = input.parse().map_err(|_| syn::Error::new(at, VALUE))?;
        return number(&literal, "-");
    }
    match input.parse::<Lit>() {
        Ok(Lit::Str(literal)) => Ok(Json::Text(string(&literal)?)),
        Ok(Lit::Char(character)) => Err(syn::Error::new(
            character.span(),
            format!(
                "a string stands in double quotes; write `\"{}\"`",
                character.value()
            ),
        )),
        Ok(literal) => number(&literal, ""),
        Err(_) => Err(syn::Error::new(at, VALUE)),
    }
}

/// `true`, `false`, `null`, or something that is no value.
fn word(input: ParseStream<'_>, word: &Ident) -> syn::Result<Json> {
    let known = match word.to_string().as_str() {
        "true" => Some(Json::Bool(true)),
        "false" => Some(Json::Bool(false)),
        "null" => Some(Json::Null),
        _ => None,
    };
    if let Some(known) = known {
        input.call(Ident::parse_any)?;
        return Ok(known);
    }
    let written = value::up_to_comma(input)?;
    let is_alone = syn::parse2::<Ident>(written.clone()).is_ok();
    let message = match word.to_string().to_lowercase().as_str() {
        known @ ("true" | "false" | "null") if is_alone => {
            format!("`{word}` is no JSON value; write `{known}`")
        }
        "none" if is_alone => format!("`{word}` is no JSON value; write `null`"),
        _ if value::is_constant(&written) => format!(
            "a condition holds JSON values, and the macro can't see the value of `{}`; write the value itself, as in `\"premium\"`",
            show(&written)
        ),
        _ if is_alone => format!("`{word}` is no JSON value; write `\"{word}\"`"),
        _ => VALUE.to_owned(),
    };
    Err(syn::Error::new(word.span(), message))
}

fn string(literal: &LitStr) -> syn::Result<String> {
    let string = literal.value();
    if !literal.suffix().is_empty() {
        return Err(syn::Error::new(
            literal.span(),
            format!("a string has no suffix; write `{string:?}`"),
        ));
    }
    if string.contains('\0') {
        return Err(syn::Error::new(
            literal.span(),
            "Postgres can't store the character U+0000; remove it from the condition",
        ));
    }
    Ok(string)
}

fn number(literal: &Lit, sign: &str) -> syn::Result<Json> {
    let number = match literal {
        Lit::Int(int) if int.suffix().is_empty() => integer(int, sign),
        Lit::Float(float) if float.suffix().is_empty() => fraction(float, sign),
        Lit::Int(int) => return Err(suffixed(literal, int.base10_digits())),
        Lit::Float(float) => return Err(suffixed(literal, float.base10_digits())),
        other => return Err(syn::Error::new(other.span(), VALUE)),
    };
    number.map(Json::Number).ok_or_else(|| {
        syn::Error::new(
            literal.span(),
            "this number can't be kept exactly; use an integer of at most 64 bits, a smaller fraction, or a string on both sides",
        )
    })
}

fn suffixed(literal: &Lit, digits: &str) -> syn::Error {
    syn::Error::new(
        literal.span(),
        format!("a number of JSON has no suffix; write `{digits}`"),
    )
}

fn integer(literal: &LitInt, sign: &str) -> Option<String> {
    let text = format!("{sign}{}", literal.base10_digits());
    let fits = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    fits.then_some(text)
}

fn fraction(literal: &LitFloat, sign: &str) -> Option<String> {
    /// Beyond this, neighbouring numbers of 64 bits are more than 1 apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = literal.base10_parse().ok()?;
    // `Debug` always writes a fraction or an exponent, and both are JSON.
    (number < EXACT).then(|| format!("{sign}{number:?}"))
}
