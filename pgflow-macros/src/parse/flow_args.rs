//! The arguments of `#[flow(..)]`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{LitStr, Path, Type, Visibility, ext::IdentExt, parse::ParseStream};

use super::{
    arguments::{self, Keys, Syntax},
    duration::duration,
    list, table, type_value, value,
};
use crate::errors::Errors;

#[derive(Default)]
pub(crate) struct FlowArgs {
    pub(crate) input: Option<Type>,
    /// The `=` before the input's type: a place on its line that no editor looks anything up at.
    pub(crate) input_equals: Option<Span>,
    pub(crate) state: Option<Type>,
    pub(crate) slug: Option<LitStr>,
    pub(crate) with_step_queues: bool,
    pub(crate) step_enum: Option<Ident>,
    pub(crate) output: Option<Ident>,
    pub(crate) output_derive: Vec<Path>,
    pub(crate) vis: Option<Visibility>,
    pub(crate) krate: Option<Path>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) base_delay: Option<u32>,
    pub(crate) max_delay: Option<u32>,
    pub(crate) give_up_after: Option<u32>,
    pub(crate) timeout: Option<u32>,
    pub(crate) keys: Keys,
}

const SYNTAX: Syntax = Syntax {
    attribute: "#[flow]",
    arguments: table::FLOW,
    other: ("#[step]", table::STEP),
    type_arguments: &["input", "state"],
    alone: None,
};

impl FlowArgs {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let keys = arguments::each(tokens, &SYNTAX, errors, |key, input, errors| {
            args.read(key, input, errors)
        });
        args.keys = keys;
        args
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.find(key).is_some()
    }

    fn read(
        &mut self,
        key: &Ident,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.unraw().to_string().as_str() {
            "input" => {
                self.input_equals = Some(value::equals(key, input, "Type")?);
                self.input = type_value::input(key, input, errors)?;
            }
            "state" => {
                value::equals(key, input, "Type")?;
                self.state = type_value::state(key, input, errors)?;
            }
            "slug" => self.slug = Some(value::slug(key, input, "my_flow_v2")?),
            "with_step_queues" => {
                value::flag(key, input)?;
                self.with_step_queues = true;
            }
            "step_enum" => self.step_enum = Some(value::type_name(key, input, "MyStep")?),
            "output" => self.output = Some(value::type_name(key, input, "MyOutput")?),
            "output_derive" => self.output_derive = list::paths(key, input, errors)?,
            "vis" => self.vis = Some(value::visibility(key, input)?),
            "crate" => {
                value::equals(key, input, "::my_crate::pgflow")?;
                self.krate = Some(type_value::crate_path(key, input, errors)?);
            }
            "max_attempts" => self.max_attempts = Some(value::attempts(key, input)?),
            "base_delay" => self.base_delay = Some(duration(key, input)?),
            "max_delay" => self.max_delay = Some(duration(key, input)?),
            "give_up_after" => self.give_up_after = Some(duration(key, input)?),
            "timeout" => self.timeout = Some(duration(key, input)?),
            other => unreachable!("`{other}` is not in the list of keys"),
        }
        Ok(())
    }
}
