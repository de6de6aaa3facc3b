//! The arguments of `#[step(..)]`.

use pgflow_definition::SkipMode;
use proc_macro2::{Ident, TokenTree};
use syn::{
    Attribute, LitStr, Meta,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{
    arguments::{self, Keys, Syntax},
    flow_args, list,
    pattern::Pattern,
    value,
};
use crate::errors::Errors;

#[derive(Default)]
pub(crate) struct StepArgs {
    pub(crate) slug: Option<LitStr>,
    pub(crate) depends_on: Option<Vec<Ident>>,
    /// A step, or the word `input`.
    pub(crate) map: Option<Ident>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) base_delay: Option<u32>,
    pub(crate) timeout: Option<u32>,
    pub(crate) start_delay: Option<u32>,
    pub(crate) required: Option<Pattern>,
    pub(crate) forbidden: Option<Pattern>,
    pub(crate) when_unmet: Option<SkipMode>,
    pub(crate) when_exhausted: Option<SkipMode>,
    pub(crate) keys: Keys,
}

const SYNTAX: Syntax = Syntax {
    attribute: "#[step]",
    other: ("#[flow(..)]", flow_args::KEYS),
    keys: KEYS,
};

pub(super) const KEYS: &[&str] = &[
    "slug",
    "depends_on",
    "map",
    "max_attempts",
    "base_delay",
    "timeout",
    "start_delay",
    "if",
    "if_not",
    "when_unmet",
    "when_exhausted",
];

impl StepArgs {
    pub(super) fn parse(attr: &Attribute, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        match &attr.meta {
            Meta::Path(_) => {}
            Meta::List(list) => {
                let keys = arguments::each(
                    list.tokens.clone(),
                    &SYNTAX,
                    errors,
                    |key, input, errors| args.read(key, input, errors),
                );
                args.keys = keys;
            }
            Meta::NameValue(meta) => errors.on(meta, "write `#[step]` or `#[step(..)]`"),
        }
        args
    }

    /// The key as it was written, if it was.
    pub(crate) fn key(&self, name: &str) -> Option<&Ident> {
        self.keys.find(name)
    }

    fn read(
        &mut self,
        key: &Ident,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.unraw().to_string().as_str() {
            "slug" => self.slug = Some(value::slug(key, input, "fetch_v1")?),
            "depends_on" => self.depends_on = Some(list::step_names(key, input, KEYS, errors)?),
            "map" => self.map = Some(map_source(key, input)?),
            "max_attempts" => self.max_attempts = Some(value::attempts(key, input)?),
            "base_delay" => self.base_delay = Some(value::duration(key, input)?),
            "timeout" => self.timeout = Some(value::duration(key, input)?),
            "start_delay" => self.start_delay = Some(value::duration(key, input)?),
            "if" => self.required = Some(Pattern::parse(key, input, errors)?),
            "if_not" => self.forbidden = Some(Pattern::parse(key, input, errors)?),
            "when_unmet" => self.when_unmet = Some(value::mode(key, input, errors)?),
            "when_exhausted" => self.when_exhausted = Some(value::mode(key, input, errors)?),
            other => unreachable!("`{other}` is not in the list of keys"),
        }
        Ok(())
    }
}

fn map_source(key: &Ident, input: ParseStream<'_>) -> syn::Result<Ident> {
    value::equals(key, input, "step")?;
    let written = value::whole(input)?;
    if let Ok(name) = Ident::parse_any.parse2(written.clone()) {
        return Ok(name);
    }
    let only = match written.clone().into_iter().next() {
        Some(TokenTree::Group(group)) => group.stream(),
        _ => written.clone(),
    };
    let message = match list::meant(&only) {
        Some(name) => format!("`map` takes the name of one step: write `map = {name}`"),
        None => "`map` takes the name of one step, or `input` for the flow's input".to_owned(),
    };
    Err(syn::Error::new_spanned(written, message))
}
