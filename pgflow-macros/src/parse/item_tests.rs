//! Any legal item of an `impl` passes through unchanged, wherever it stands.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use super::{FlowImpl, Item, item::OtherKind};

/// Forms of items that are no steps, each with what it is. `NAME` stands for the name.
const OTHERS: &[(&str, &str)] = &[
    ("fn", "fn NAME() {}"),
    (
        "fn",
        "fn NAME(o: &[Order]) -> impl Iterator<Item = u32> { o.iter().map(|o| o.size) }",
    ),
    (
        "fn",
        "fn NAME() -> Pin<Box<dyn Future<Output = u8> + Send>> { Box::pin(async { 1 }) }",
    ),
    (
        "fn",
        "fn NAME<I: Iterator<Item = u8>>(it: I) -> u8 { it.sum() }",
    ),
    (
        "fn",
        "fn NAME<I>(it: I) -> u8 where I: IntoIterator<Item = u8>, { let n = 1; n }",
    ),
    ("fn", "fn NAME<const N: usize = 3>(it: [u8; N]) {}"),
    (
        "fn",
        "fn NAME() -> Matrix<{ 1 + 2 }, 'static> where [u8; { 3 }]: Sized { Matrix }",
    ),
    ("fn", "fn NAME() -> [u8; { let n = 3; n }] { [0; 3] }"),
    (
        "fn",
        "fn NAME(f: impl Fn(u8) -> u8, g: fn() -> u8, h: &dyn Fn(&u8) -> bool) {}",
    ),
    (
        "fn",
        "fn NAME<'a, 'b: 'a, T>(t: &'a T, u: &'b T) -> &'a T where for<'c> T: Fn(&'c u8) { t }",
    ),
    (
        "fn",
        "fn NAME() -> impl Iterator<Item = impl Fn(u8) -> u8> + use<> { None.into_iter() }",
    ),
    (
        "fn",
        "fn NAME(&self, mut x: u8, (a, b): (u8, u8), [c, ..]: [u8; 2]) -> ! { loop {} }",
    ),
    ("fn", "fn NAME(self: Box<Self>) {}"),
    (
        "fn",
        "fn NAME(Order { size, .. }: Order, #[allow(unused)] n: u8) { if size == 3 { return; } }",
    ),
    ("fn", "const fn NAME(n: u8) -> u8 { n }"),
    ("fn", "async fn NAME() -> u8 { 3 }"),
    (
        "fn",
        "pub(crate) unsafe extern \"C\" fn NAME(n: u8) -> u8 { n }",
    ),
    ("fn", "extern fn NAME() {}"),
    ("fn", "pub(in crate::flows) const unsafe fn NAME() {}"),
    (
        "fn",
        "/// Docs with `=` and {braces}; and more.\n#[inline] #[doc = \"x = {\"] #[must_use] pub fn NAME() -> u8 { 1 }",
    ),
    (
        "fn",
        "#[cfg_attr(test, allow(dead_code, unused))] fn NAME() {}",
    ),
    (
        "fn",
        "#[deprecated(note = \"gone\", since = \"1\")] fn NAME() { #![allow(unused)] const N: u8 = 3; }",
    ),
    ("fn", "fn r#type() {}"),
    (
        "fn",
        "fn NAME() -> Option<Box<dyn for<'a> Fn(&'a u8) -> <Self as Trait<'a>>::Out>> { None }",
    ),
    (
        "fn",
        "fn NAME<T>(_: T) where T: Trait<Out = u8, Other = Vec<{ N }>> {}",
    ),
    ("const", "const NAME: usize = 10;"),
    ("const", "const NAME: [u8; { 3 }] = [0; 3];"),
    ("const", "pub const NAME: u8 = { let n = 3; n };"),
    ("const", "const NAME: fn(u8) -> u8 = |n| { n + 1 };"),
    ("const", "const NAME: Matrix<{ 3 }> = Matrix { n: 3 };"),
    ("const", "const NAME: u8 = match 3 { 3 => 4, _ => { 5 } };"),
    (
        "const",
        "const NAME: bool = if 3 == 4 { true } else { false };",
    ),
    ("const", "const NAME: &str = concat!(\"a\", \"b\");"),
    ("const", "const NAME: u8 = unsafe { f() };"),
    ("const", "const _: () = assert!(3 >= 2);"),
    (
        "const",
        "#[allow(unused)] pub(crate) const NAME: Option<&'static [u8]> = None;",
    ),
    ("type", "type NAME = u8;"),
    ("type", "pub type NAME<T> = Vec<T> where T: Clone;"),
    ("macro", "steps!{ a = b; fn c() {} }"),
    ("macro", "steps!(a, b);"),
    ("macro", "steps![fn a() {}];"),
    (
        "macro",
        "#[allow(unused)] crate::flows::steps! { #[step] async fn inner() {} }",
    ),
    ("macro", "self::default!();"),
    ("macro", "default! {}"),
];

const STEPS: &[&str] = &[
    "#[step] async fn NAME(input: &Order) -> StepResult<u32> { todo!() }",
    "/// Docs.\n#[step(depends_on = [other], if = { other: 1 })]\n#[tracing::instrument(skip(a), fields(b = 3))] pub async fn NAME(#[from(other)] (a, b): (u8, u8)) -> Result<Vec<[u8; { 2 }]>, E> where u8: Into<u16> { let a = ; }",
    "#[pgflow::step] pub(crate) async fn NAME() -> anyhow::Result<HashMap<u8, impl_type>> {}",
    "#[cfg_attr(feature = \"trace\", tracing::instrument)] #[step] async fn NAME() -> StepResult<()> { x. }",
];

struct Form {
    kind: &'static str,
    source: TokenStream,
}

fn forms() -> Vec<Form> {
    let others = OTHERS.iter().copied();
    let steps = STEPS.iter().map(|step| ("step", *step));
    others
        .chain(steps)
        .enumerate()
        .map(|(position, (kind, text))| Form {
            kind,
            source: (text.replace("NAME", &format!("item_{position}")).parse()).expect("tokens"),
        })
        .collect()
}

fn kind(item: &Item) -> &'static str {
    match item {
        Item::Step(_) => "step",
        Item::Unreadable { .. } => "unreadable",
        Item::Other(other) => match other.kind {
            OtherKind::Function(_) => "fn",
            OtherKind::Const(_) => "const",
            OtherKind::Type => "type",
            OtherKind::MacroCall => "macro",
            OtherKind::Attributes => "attributes",
        },
    }
}

fn check(items: &[&Form]) {
    let sources = items.iter().map(|item| &item.source);
    let source = FlowImpl::parse(quote!(impl Audit { #(#sources)* })).expect("an impl");
    let kinds: Vec<_> = source.items.iter().map(kind).collect();
    let expected: Vec<_> = items.iter().map(|item| item.kind).collect();
    let text: Vec<_> = items.iter().map(|item| item.source.to_string()).collect();
    assert_eq!(kinds, expected, "{text:#?}");
    for (read, written) in source.items.iter().zip(items) {
        if let Item::Other(read) = read {
            assert_eq!(read.tokens.to_string(), written.source.to_string());
        }
    }
}

#[test]
fn each_item_stands_before_and_behind_each_other_one() {
    let forms = forms();
    for first in &forms {
        for second in &forms {
            check(&[first, second]);
        }
    }
}

#[test]
fn many_items_stand_in_any_order() {
    let forms = forms();
    let mut order: Vec<&Form> = forms.iter().collect();
    // A fixed sequence of orders, each far from the last.
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..300 {
        for last in (1..order.len()).rev() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let other = usize::try_from(random >> 33).expect("31 bits") % (last + 1);
            order.swap(last, other);
        }
        check(&order);
    }
}

/// Returns a fragment as `macro_rules` passes it.
fn fragment(tokens: &str) -> TokenTree {
    Group::new(Delimiter::None, tokens.parse().expect("tokens")).into()
}

#[test]
fn fragments_of_macro_rules_are_read_as_what_they_are() {
    let (vis, ty, body, meta) = (
        fragment("pub(crate)"),
        fragment("inner::Audit"),
        fragment("{ todo!() }"),
        fragment("step(timeout = \"5s\")"),
    );
    let (none, result, value) = (fragment(""), fragment("StepResult<u8>"), fragment("3 + 4"));
    let source = FlowImpl::parse(quote! {
        impl #ty {
            #vis fn helper() #body
            #vis const LIMIT: #ty = #value;
            #[#meta] #none async fn parse(input: #ty) -> #result #body
            #[step] #vis async fn fetch() -> #result #body
        }
    })
    .expect("an impl");
    let kinds: Vec<_> = source.items.iter().map(kind).collect();
    assert_eq!(kinds, ["fn", "const", "step", "step"]);
    assert_eq!(source.own_type().expect("a type of its own").ident, "Audit");
}

#[test]
fn a_broken_item_takes_no_other_with_it() {
    for broken in [
        "fn broken(a: ) -> u8 { 1 }",
        "const BROKEN: = 3;",
        "static BROKEN: u8 = { 3 };",
        "async fn broken(a b) -> Matrix<{ 3 }> { 1 }",
        "struct Broken { a: u8 }",
        "broken;",
        "#[step] async fn broken(a: ) -> StepResult<u8> { 1 }",
    ] {
        let tokens: TokenStream = broken.parse().expect("tokens");
        let source = FlowImpl::parse(quote! {
            impl Audit {
                fn before() -> impl Iterator<Item = u8> { None.into_iter() }
                #tokens
                #[step] async fn parse() -> StepResult<u8> { todo!() }
                const AFTER: u8 = 3;
            }
        })
        .expect("an impl");
        let kinds: Vec<_> = source.items.iter().map(kind).collect();
        assert!(
            matches!(&kinds[..], ["fn", middle @ .., "step", "const"] if !middle.is_empty()),
            "{broken}: {kinds:?}"
        );
    }
}
