//! Stored values that this build can't read, though the build that wrote them can.

use std::{error::Error, fmt};

use pgflow_definition::{StepDefinition, StepKind};

use super::{StepError, decode::Misfit};

/// The place that a value is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin<'s> {
    FlowInput,
    Element,
    Dependency(&'s str),
    Dependencies,
    End,
}

/// The failure of an attempt whose handler never started: a stored value does not have the type of
/// its parameter.
///
/// An ordinary failure. The build that wrote the value can read it, and after a rollback the next
/// attempt is that build's.
#[derive(Debug)]
pub(crate) struct Unreadable {
    step: &'static str,
    what: String,
    misfit: Misfit,
    source: Option<Source>,
    builds: Builds,
}

/// The tasks that a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) step: String,
    /// Of a map step: the element, or all of them.
    pub(crate) element: Option<i32>,
}

/// The builds of the application, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Builds {
    /// The build that can't read the value.
    pub(crate) reader: Option<String>,
    /// The build that wrote the value.
    pub(crate) writer: Option<String>,
}

impl Unreadable {
    #[cold]
    pub(super) fn error(
        step: &StepDefinition<'static>,
        task_index: i32,
        origin: Origin<'_>,
        misfit: Misfit,
    ) -> StepError {
        let (what, source) = match origin {
            Origin::FlowInput => ("the flow's input".to_owned(), None),
            Origin::End => ("the end of the run (`end`)".to_owned(), None),
            Origin::Element => {
                let source = (step.kind == StepKind::Map).then(|| step.depends_on.first());
                let source = source.flatten().map(|source| Source {
                    step: (*source).to_owned(),
                    element: Some(task_index),
                });
                ("the element (`item`)".to_owned(), source)
            }
            Origin::Dependency(slug) => {
                let source = Source {
                    step: slug.to_owned(),
                    element: misfit.first_index(),
                };
                (format!("the output of dependency `{slug}`"), Some(source))
            }
            Origin::Dependencies => ("the outputs of the dependencies".to_owned(), None),
        };
        StepError::from(Self {
            step: step.slug,
            what,
            misfit,
            source,
            builds: Builds::default(),
        })
    }

    /// The tasks whose outputs hold the value; none for the flow's input.
    pub(crate) fn written_by(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Names the builds in the message.
    pub(crate) fn name(&mut self, builds: Builds) {
        self.builds = builds;
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            what,
            misfit,
            builds: Builds { reader, writer },
            ..
        } = self;
        write!(f, "step `{step}`: this build ")?;
        if let Some(reader) = reader {
            write!(f, "({reader}) ")?;
        }
        write!(f, "can't read a stored value")?;
        if let Some(writer) = writer.as_ref().filter(|_| writer != reader) {
            write!(f, ", which build {writer} wrote")?;
        }
        write!(
            f,
            ": {what}: {misfit}; roll back, or deploy a build that can read it, before the attempts are used up"
        )
    }
}

// No source: the text of a serde error quotes the value.
impl Error for Unreadable {}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::flow::{__private, decode};

    fn misfit(json: &str) -> Misfit {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        decode::<Vec<u8>>(raw).expect_err("does not fit")
    }

    fn error(kind: StepKind, depends_on: &'static [&'static str], origin: Origin<'_>) -> StepError {
        let step = __private::step("report");
        let step = match kind {
            StepKind::Map => step.map(depends_on),
            StepKind::Single => step.depends_on(depends_on),
        };
        Unreadable::error(&step.done(), 7, origin, misfit("[1, \"hunter2\"]"))
    }

    #[test]
    fn an_element_comes_from_the_task_of_its_index_and_a_part_of_a_list_from_its_own() {
        let source = |mut error: StepError| {
            let unreadable = error.unreadable().expect("unreadable");
            unreadable.written_by().cloned()
        };
        let of = |step: &str, element| Source {
            step: step.to_owned(),
            element: Some(element),
        };
        let element = error(StepKind::Map, &["parse"], Origin::Element);
        assert_eq!(source(element), Some(of("parse", 7)));
        let of_input = error(StepKind::Map, &[], Origin::Element);
        assert_eq!(source(of_input), None);
        let part = error(StepKind::Single, &["parse"], Origin::Dependency("parse"));
        assert_eq!(source(part), Some(of("parse", 1)));
        let input = error(StepKind::Single, &["parse"], Origin::FlowInput);
        assert_eq!(source(input), None);
    }

    #[test]
    fn the_builds_are_named_as_far_as_they_are_known_and_differ() {
        let text = |reader: Option<&str>, writer: Option<&str>| {
            let mut error = error(StepKind::Single, &["parse"], Origin::Dependency("parse"));
            error.unreadable().expect("unreadable").name(Builds {
                reader: reader.map(str::to_owned),
                writer: writer.map(str::to_owned),
            });
            assert!(!error.is_permanent());
            let message = error.message();
            let (start, rest) = message
                .split_once(": the output")
                .expect("names the output");
            assert_eq!(
                rest,
                " of dependency `parse`: at `[1]`: invalid type (a string), expected u8 (line 1, column 13); roll back, \
                 or deploy a build that can read it, before the attempts are used up"
            );
            start.to_owned()
        };
        assert_eq!(
            text(Some("2"), Some("1")),
            "step `report`: this build (2) can't read a stored value, which build 1 wrote"
        );
        assert_eq!(
            text(None, Some("1")),
            "step `report`: this build can't read a stored value, which build 1 wrote"
        );
        for writer in [None, Some("2")] {
            assert_eq!(
                text(Some("2"), writer),
                "step `report`: this build (2) can't read a stored value"
            );
        }
        assert_eq!(
            text(None, None),
            "step `report`: this build can't read a stored value"
        );
    }
}
