//! The arguments of `#[step(..)]`.

use pgflow_definition::{ElementFailure, RunsOn, SkipMode};
use proc_macro2::{Ident, TokenStream};
use syn::{Attribute, Expr, LitStr, Meta, ext::IdentExt, parse::ParseStream};

use super::{
    arguments::{self, Keys, Syntax},
    duration::duration,
    list,
    mention::Mention,
    pattern::Pattern,
    run_end, table, value,
};
use crate::errors::Errors;

#[derive(Default)]
pub(crate) struct StepArgs {
    pub(crate) slug: Option<LitStr>,
    pub(crate) depends_on: Option<Vec<Mention>>,
    /// A step, or the word `input`.
    pub(crate) map: Option<Mention>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) base_delay: Option<u32>,
    pub(crate) max_delay: Option<u32>,
    pub(crate) give_up_after: Option<u32>,
    pub(crate) timeout: Option<u32>,
    pub(crate) start_delay: Option<u32>,
    pub(crate) required: Option<Pattern>,
    pub(crate) forbidden: Option<Pattern>,
    pub(crate) when_unmet: Option<SkipMode>,
    pub(crate) when_exhausted: Option<SkipMode>,
    pub(crate) on_element_failure: Option<ElementFailure>,
    pub(crate) runs_on: Option<RunsOn>,
    pub(crate) keys: Keys,
}

const SYNTAX: Syntax = Syntax {
    attribute: "#[step]",
    arguments: table::STEP,
    other: ("#[flow(..)]", table::FLOW),
    type_arguments: &[],
    alone: Some("a step to run after is named in a list: `depends_on = [{}]`"),
};

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
            "depends_on" => self.depends_on = Some(list::step_names(key, input, errors)?),
            "map" => self.map = Some(map_source(key, input)?),
            "max_attempts" => self.max_attempts = Some(value::attempts(key, input)?),
            "base_delay" => self.base_delay = Some(duration(key, input)?),
            "max_delay" => self.max_delay = Some(duration(key, input)?),
            "give_up_after" => self.give_up_after = Some(duration(key, input)?),
            "timeout" => self.timeout = Some(duration(key, input)?),
            "start_delay" => self.start_delay = Some(duration(key, input)?),
            "if" => self.required = Some(Pattern::parse(key, input, errors)?),
            "if_not" => self.forbidden = Some(Pattern::parse(key, input, errors)?),
            "when_unmet" => self.when_unmet = Some(value::mode(key, input, errors)?),
            "when_exhausted" => self.when_exhausted = Some(value::mode(key, input, errors)?),
            "on_element_failure" => {
                self.on_element_failure = Some(value::element_failure(key, input, errors)?);
            }
            "on" => self.runs_on = Some(run_end::parse(key, input, errors)?),
            other => unreachable!("`{other}` is not in the list of keys"),
        }
        Ok(())
    }
}

fn map_source(key: &Ident, input: ParseStream<'_>) -> syn::Result<Mention> {
    value::equals(key, input, "step")?;
    let written = value::whole(input)?;
    let wrong = |message: &str| syn::Error::new_spanned(&written, message);
    let mention = Mention::parse(written.clone())
        .map_err(|_| wrong("`map` takes the name of one step, or `input` for the flow's input"))?;
    if mention.name == "input" && !mention.is_settled && is_part(&written) {
        return Err(wrong(
            "`map = input` maps over the whole input; let a root step return this list, and map over that step",
        ));
    }
    Ok(mention)
}

/// Returns whether something is taken out of a value.
fn is_part(written: &TokenStream) -> bool {
    let expr = syn::parse2::<Expr>(written.clone());
    expr.is_ok_and(|expr| matches!(expr, Expr::Field(_) | Expr::MethodCall(_) | Expr::Index(_)))
}
