//! Something too much.

use crate::{
    facts::{ancestors, dependents, takers},
    mutation::{Edit, Mutation},
    source::{Source, Step, unraw},
};

pub fn all(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for step in &source.steps {
        edits.extend(dependencies(source, step));
        edits.extend(arguments(source, step));
        edits.extend(twice(source, step));
    }
    edits.extend(items(source));
    edits
}

fn dependencies(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let name = step.name.text.as_str();
    for word in step.depends_on() {
        let before = |text: &str| vec![Edit::insert(word.at.start, format!("{text}, "))];
        edits.push(Mutation::fails(
            "add: a dependency again",
            before(&word.text),
        ));
        edits.push(Mutation::fails("add: a dependency on itself", before(name)));
        edits.push(Mutation::fails(
            "add: a dependency on no step",
            before("zebra"),
        ));
    }
    let (Some(first), []) = (source.steps.first(), step.depends_on()) else {
        return edits;
    };
    if step.map().is_some() && first.unraw() != step.unraw() {
        let text = format!("depends_on = [{}],\n        ", first.name.text);
        let edit = vec![Edit::insert(step.args[0].whole.start, text)];
        edits.push(Mutation::fails("add: `depends_on` beside `map`", edit));
    }
    if step.map().is_none() {
        // A root that waits for a step behind it: each line of the cycle is right.
        for last in source
            .steps
            .iter()
            .filter(|last| last.unraw() != step.unraw())
        {
            let behind = ancestors(source, last);
            if !behind.iter().any(|it| it.unraw() == step.unraw()) {
                continue;
            }
            // Conditions on the input would become conditions on the dependency.
            if step.arg("if").is_some() || step.arg("if_not").is_some() {
                continue;
            }
            let edit = argument(step, &format!("depends_on = [{}]", last.name.text));
            let names = behind.iter().map(|step| unraw(&step.name.text));
            edits.push(Mutation::fails("add: a cycle", vec![edit]).naming(names));
        }
    }
    edits
}

/// An argument as the first one of a step.
fn argument(step: &Step, text: &str) -> Edit {
    match step.args.first() {
        Some(first) => Edit::insert(first.whole.start, format!("{text},\n        ")),
        None => Edit::new(&step.attr, format!("#[step({text})]")),
    }
}

fn arguments(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let fails = |kind, text: &str| Mutation::fails(kind, vec![argument(step, text)]);
    let right =
        |text: &str| Mutation::compiles("add: a right argument", vec![argument(step, text)]);
    let is_conditional = step.arg("if").is_some() || step.arg("if_not").is_some();
    if !is_conditional && step.arg("when_unmet").is_none() {
        edits.push(fails(
            "add: `when_unmet` without a condition",
            "when_unmet = \"skip\"",
        ));
    }
    if step.map().is_some_and(|map| map.text == "input") && !is_conditional {
        edits.push(fails(
            "add: a condition to a map over the input",
            "if = { plan: 1 }",
        ));
    }
    if step.map().is_some_and(|map| map.text != "input")
        && !is_conditional
        && takers(source, step).is_empty()
    {
        edits.push(fails(
            "add: a condition on what is no dependency",
            "if = { zebra: 1 }",
        ));
    }
    for text in [
        "max_attempts = 7",
        "base_delay = \"7s\"",
        "timeout = \"7m\"",
        "start_delay = \"7s\"",
        "slug = \"seventh\"",
    ] {
        let key = text.split(' ').next().expect("a key");
        if step.arg(key).is_none() {
            edits.push(right(text));
        }
    }
    for text in [
        "retries = 3",
        "name = \"a\"",
        "after = [b]",
        "zebra = 1",
        "zebra",
        "zebra(1)",
        "3",
        "\"5s\"",
        "[a]",
        "= 3",
        "a b",
    ] {
        edits.push(fails("add: an unknown argument", text));
    }
    // The steps of one slug are one in the database.
    if let Some(other) = source
        .steps
        .iter()
        .find(|other| other.unraw() != step.unraw())
        && step.arg("slug").is_none()
    {
        let slug = other.text_of("slug").unwrap_or(other.unraw());
        let mutation = fails(
            "add: the slug of another step",
            &format!("slug = \"{slug}\""),
        );
        edits.push(mutation.naming([unraw(&other.name.text), unraw(&step.name.text), slug]));
    }
    if dependents(source, step).is_empty() && !is_conditional {
        edits.push(right("when_exhausted = \"skip\"").when(step.arg("when_exhausted").is_none()));
    }
    edits
        .into_iter()
        .filter(|edit| !edit.edits.is_empty())
        .collect()
}

impl Mutation {
    /// Left out unless it applies.
    fn when(mut self, applies: bool) -> Self {
        if !applies {
            self.edits.clear();
        }
        self
    }
}

fn twice(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let copy = |kind, text: String| {
        Mutation::fails(
            kind,
            vec![Edit::insert(step.whole.end, format!("\n\n    {text}"))],
        )
    };
    let name = step.name.text.as_str();
    edits.push(
        copy(
            "add: a step of the same name",
            source.at(&step.whole).to_owned(),
        )
        .naming([name]),
    );
    let plain = format!("fn {name}() {{}}");
    edits.push(copy("add: a function of a step's name", plain).naming([name]));
    for param in &step.params {
        let edit = vec![Edit::insert(
            param.whole.start,
            format!("{}, ", source.at(&param.whole)),
        )];
        edits.push(Mutation::fails("add: a parameter again", edit).naming([param.binding()]));
    }
    edits
}

/// Items of every form between the steps; the last ones are no step, but marked as one.
fn items(source: &Source) -> Vec<Mutation> {
    const RIGHT: &[&str] = &[
        "fn sizes(of: &[u8]) -> impl Iterator<Item = u32> { of.iter().map(|of| u32::from(*of)) }",
        "fn boxed() -> ::std::pin::Pin<Box<dyn Future<Output = u8> + Send>> { todo!() }",
        "fn sum<I>(of: I) -> u8 where I: IntoIterator<Item = u8> { todo!() }",
        "fn count<I: Iterator<Item = u8>>(of: I) -> usize { of.count() }",
        "fn defaults<const N: usize>(of: [u8; N]) -> [u8; N] { of }",
        "const PAIRS: [(u8, &'static str); 2] = [(1, \"a\"), (2, \"b\")];",
        "const BLOCK: usize = { let a = 1; a + 1 };",
        "const CHOICE: Option<u8> = if Self::YES { None } else { Some(2) }; const YES: bool = 1 < 2;",
        "const RANGE: ::std::ops::Range<u8> = ::std::ops::Range { start: 1, end: 2 };",
        "const CLOSURE: fn(u8) -> u8 = |n| { n + 1 };",
        "const TURBOFISH: usize = ::std::mem::size_of::<[u8; { 2 + 2 }]>();",
        "const UNSAFE: u8 = unsafe { 3 };",
        "pub(crate) const fn double(n: u8) -> u8 { n * 2 }",
        "#[inline] pub async fn helper() -> u8 { 1 }",
        "unsafe fn raw(n: *const u8) {}",
        "extern \"C\" fn abi(n: u8) {}",
        "fn lives<'a>(text: &'a str) -> &'a str where 'static: 'a { text }",
        "fn object(of: &dyn Fn(u8) -> bool) -> bool { of(1) }",
        "fn matches(n: u8) -> u8 { match n { 0 => 1, _ => 2 } }",
        "fn array() -> [u8; { 1 + 1 }] { [0; 2] }",
        "/// Documented, `= {`.\n    #[allow(dead_code)]\n    #[doc = \"= { ;\"]\n    fn documented(self, a: u8) {}",
        "fn nested() { struct Inner { a: u8 } impl Inner { const A: u8 = { 1 }; } }",
        "fn higher<F: for<'a> Fn(&'a u8) -> &'a u8>(f: F) {}",
        "fn of_trait<T: PartialEq<Option<u8>> + Into<Vec<u8>>>(t: T) -> bool { t == None }",
        "fn r#match(r#type: u8) -> u8 { r#type }",
    ];
    const WRONG: &[&str] = &[
        "#[step] const STEP: u8 = 1;",
        "#[step] fn not_async() -> StepResult<()> { todo!() }",
        "#[step] async fn run() -> StepResult<()> { todo!() }",
        "#[step] async fn input() -> StepResult<()> { todo!() }",
        "#[step] async fn ctx() -> StepResult<()> { todo!() }",
        "#[step] async fn start() -> StepResult<()> { todo!() }",
        "#[step] async fn a__b() -> StepResult<()> { todo!() }",
        "#[step] async fn end_() -> StepResult<()> { todo!() }",
        "#[step = 3] async fn equals() -> StepResult<()> { todo!() }",
        "#[step(timeout)] async fn no_value() -> StepResult<()> { todo!() }",
        "#[step] type Alias = u8;",
    ];
    let places = || {
        source
            .steps
            .iter()
            .map(|step| step.whole.start)
            .chain([source.body.end])
    };
    let edit = |at: usize, item: &str| vec![Edit::insert(at, format!("{item}\n\n    "))];
    let right = places().flat_map(|at| {
        let items = RIGHT.iter();
        items.map(move |item| Mutation::compiles("add: an item between the steps", edit(at, item)))
    });
    let wrong = places().flat_map(|at| {
        WRONG
            .iter()
            .map(move |item| Mutation::fails("add: an item that can't be a step", edit(at, item)))
    });
    right.chain(wrong).collect()
}
