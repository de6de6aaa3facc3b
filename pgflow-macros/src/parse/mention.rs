//! A step as an argument names it.

use heck::ToSnakeCase;
use proc_macro2::{Ident, TokenStream};
use syn::{
    Expr, Lit, LitStr, Path, Type,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

/// `parse`, or another way to write it: `"parse"`, `Self::parse`, `Step::Parse`, `&parse`,
/// `parse()`.
#[derive(Clone)]
pub(crate) struct Mention {
    pub(crate) name: Ident,
    /// The segment before the name in a path.
    pub(crate) qualifier: Option<Ident>,
    /// All of it.
    pub(crate) written: TokenStream,
    /// `true` if it is written as it should be, or was reported not to be.
    pub(crate) is_settled: bool,
}

impl Mention {
    pub(super) fn parse(written: TokenStream) -> syn::Result<Self> {
        if let Ok(name) = Ident::parse_any.parse2(written.clone()) {
            return Ok(Self {
                name,
                qualifier: None,
                written,
                is_settled: true,
            });
        }
        let base = match syn::parse2::<Expr>(written.clone()) {
            Ok(expr) => {
                if let Some((step, name)) = renamed(&expr) {
                    let message = format!(
                        "a step's output gets another name where it is taken; write `{step}` here, and `#[from({step})] {name}: ..` as the \
                         parameter"
                    );
                    return Err(syn::Error::new_spanned(&written, message));
                }
                base(&expr)
            }
            Err(_) => None,
        };
        let (name, qualifier) =
            base.ok_or_else(|| syn::Error::new_spanned(&written, "expected the name of a step"))?;
        Ok(Self {
            name,
            qualifier,
            written,
            is_settled: false,
        })
    }

    pub(super) fn parse_all(input: ParseStream<'_>) -> syn::Result<Self> {
        Self::parse(input.parse()?)
    }

    /// Returns whether it may name a step of this flow.
    pub(crate) fn is_of_the_flow(&self) -> bool {
        let qualifier = self.qualifier.as_ref();
        qualifier.is_none_or(|qualifier| qualifier == "Self" || qualifier == "Step")
    }

    /// Returns the name of the function if this is written as types are.
    pub(crate) fn function_name(&self) -> Ident {
        let name = self.name.unraw().to_string();
        if name.starts_with(|first: char| first.is_ascii_uppercase()) {
            Ident::new(&name.to_snake_case(), self.name.span())
        } else {
            self.name.clone()
        }
    }

    pub(super) fn settled(self) -> Self {
        Self {
            is_settled: true,
            ..self
        }
    }
}

/// The step and the name in `step as name` or `name = step`.
fn renamed(expr: &Expr) -> Option<(Ident, Ident)> {
    let of_type = |ty: &Type| match ty {
        Type::Path(path) => path.path.get_ident().cloned(),
        _ => None,
    };
    match expr {
        Expr::Cast(cast) => Some((base(&cast.expr)?.0, of_type(&cast.ty)?)),
        Expr::Assign(assign) => Some((base(&assign.right)?.0, base(&assign.left)?.0)),
        _ => None,
    }
}

/// The name that an expression begins with, and what qualifies it.
fn base(expr: &Expr) -> Option<(Ident, Option<Ident>)> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => of_path(&path.path),
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => of_text(text),
            _ => None,
        },
        Expr::Array(list) if list.elems.len() == 1 => base(&list.elems[0]),
        Expr::Tuple(list) if list.elems.len() == 1 => base(&list.elems[0]),
        Expr::Await(expr) => base(&expr.base),
        Expr::Call(expr) => base(&expr.func),
        Expr::Cast(expr) => base(&expr.expr),
        Expr::Field(expr) => base(&expr.base),
        Expr::Group(expr) => base(&expr.expr),
        Expr::Index(expr) => base(&expr.expr),
        Expr::MethodCall(expr) => base(&expr.receiver),
        Expr::Paren(expr) => base(&expr.expr),
        Expr::Reference(expr) => base(&expr.expr),
        Expr::Try(expr) => base(&expr.expr),
        Expr::Unary(expr) => base(&expr.expr),
        _ => None,
    }
}

fn of_path(path: &Path) -> Option<(Ident, Option<Ident>)> {
    let mut segments = path.segments.iter().rev();
    let last = segments.next()?;
    let qualifier = segments.next().map(|segment| segment.ident.clone());
    (last.arguments.is_none()).then(|| (last.ident.clone(), qualifier))
}

fn of_text(text: &LitStr) -> Option<(Ident, Option<Ident>)> {
    let mut name = text.parse_with(Ident::parse_any).ok()?;
    name.set_span(text.span());
    Some((name, None))
}
