//! A flow as a diagram, in the language of [Mermaid](https://mermaid.js.org).
//!
//! GitHub, GitLab and many editors draw it from a code block of the language `mermaid`.

use std::fmt::{self, Write};

use crate::skip::SkipRule;
use crate::{
    Condition, ElementFailure, FlowDefinition, RunsOn, SkipMode, StepDefinition, StepKind,
};

/// Patterns of conditions are cut at this many characters.
const MAX_PATTERN: usize = 80;

/// The parts of a step that the diagram shows. Both a definition in code and one that is read from
/// the database can fill it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<'a> {
    /// The step's slug.
    pub slug: &'a str,
    /// One task, or one for each element of a list.
    pub kind: StepKind,
    /// The slugs of the steps that it waits for, in any order.
    pub depends_on: Vec<&'a str>,
    /// The condition under which it runs.
    pub condition: Condition<'a>,
    /// The effect of an unmet condition.
    pub when_unmet: SkipMode,
    /// The effect when a task has used up its attempts.
    pub when_exhausted: SkipMode,
    /// The effect, on a map step, of an element whose attempts are exhausted.
    pub on_element_failure: ElementFailure,
    /// The end of the run that an end step waits for.
    pub runs_on: Option<RunsOn>,
}

impl Step<'_> {
    fn skip_rule(&self) -> SkipRule {
        SkipRule {
            conditional: !self.condition.is_empty(),
            when_unmet: self.when_unmet,
            when_exhausted: self.when_exhausted,
        }
    }
}

impl<'a> From<&StepDefinition<'a>> for Step<'a> {
    fn from(step: &StepDefinition<'a>) -> Self {
        Self {
            slug: step.slug,
            kind: step.kind,
            depends_on: step.depends_on.to_vec(),
            condition: step.condition,
            when_unmet: step.when_unmet,
            when_exhausted: step.when_exhausted,
            on_element_failure: step.on_element_failure,
            runs_on: step.runs_on,
        }
    }
}

impl FlowDefinition<'_> {
    /// The flow as a Mermaid flowchart, from left to right; the same text for the same definition.
    ///
    /// A map step has double sides. Conditions and modes other than the default stand below the
    /// slug. A dotted arrow comes from a step that may be skipped: `optional` if what follows then
    /// runs without its output, `cascades` if it is skipped as well. A dotted arrow comes from the
    /// end of the run, a circle, to each step that runs when the run has ended.
    ///
    /// GitHub, GitLab and many editors draw it from a code block of the language `mermaid`.
    ///
    /// ```
    /// # use pgflow_definition::*;
    /// # let options = StepOptions::default();
    /// # let step = |slug, kind, depends_on| StepDefinition {
    /// #     slug, kind, depends_on, options, condition: Condition::default(),
    /// #     when_unmet: SkipMode::Skip, when_exhausted: SkipMode::Fail,
    /// #     on_element_failure: ElementFailure::Fail, runs_on: None, needs_flow_input: false,
    /// # };
    /// # let steps = [step("greet", StepKind::Map, &[] as &[&str]), step("letter", StepKind::Single, &["greet"])];
    /// # let greetings = FlowDefinition { slug: "greetings", queue_mode: QueueMode::Flow, options: FlowOptions::default(), steps: &steps };
    /// assert_eq!(
    ///     greetings.to_mermaid(),
    ///     r#"graph LR
    ///     s_greet[["greet<br/>one task per element of the input"]]
    ///     s_letter["letter"]
    ///     s_greet --> s_letter
    /// "#
    /// );
    /// ```
    pub fn to_mermaid(&self) -> String {
        let steps: Vec<Step<'_>> = self.steps.iter().map(Step::from).collect();
        render(&steps)
    }
}

/// The diagram of these steps, in the order of the definition; see [`FlowDefinition::to_mermaid`].
pub fn render(steps: &[Step<'_>]) -> String {
    Diagram(steps).to_string()
}

struct Diagram<'a>(&'a [Step<'a>]);

impl fmt::Display for Diagram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("graph LR\n")?;
        for step in self.0 {
            let (open, close) = match step.kind {
                StepKind::Single => ("[", "]"),
                StepKind::Map => ("[[", "]]"),
            };
            writeln!(f, "    s_{}{open}\"{}\"{close}", step.slug, Label(step))?;
        }
        for step in self.0 {
            // As a database keeps no order of dependencies, that of the steps counts.
            let dependencies = self.0.iter().filter(|d| step.depends_on.contains(&d.slug));
            for dependency in dependencies {
                let arrow = arrow(dependency.skip_rule());
                writeln!(f, "    s_{} {arrow} s_{}", dependency.slug, step.slug)?;
            }
        }
        let mut end_steps = self
            .0
            .iter()
            .filter_map(|s| Some((s, s.runs_on?)))
            .peekable();
        if end_steps.peek().is_some() {
            // No id of a step begins like this.
            f.write_str("    run_end((\"end of the run\"))\n")?;
        }
        for (step, runs_on) in end_steps {
            let arrow = match runs_on {
                RunsOn::Failure => "-. \"on failure\" .->",
                RunsOn::End => "-.->",
            };
            writeln!(f, "    run_end {arrow} s_{}", step.slug)?;
        }
        Ok(())
    }
}

fn arrow(rule: SkipRule) -> &'static str {
    match (rule.leaves_dependents_without(), rule.cascades()) {
        (false, false) => "-->",
        (true, false) => "-. \"optional\" .->",
        (false, true) => "-. \"cascades\" .->",
        (true, true) => "-. \"optional or cascades\" .->",
    }
}

/// The text of a step, line by line.
struct Label<'a>(&'a Step<'a>);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.0;
        let mut line = |text: fmt::Arguments<'_>| write!(f, "{text}");
        line(format_args!("{}", Escaped(step.slug)))?;
        if step.kind == StepKind::Map {
            match step.depends_on.first() {
                Some(source) => line(format_args!(
                    "<br/>one task per element of {}",
                    Escaped(source)
                ))?,
                None => line(format_args!("<br/>one task per element of the input"))?,
            }
        }
        let conditions = [
            ("if", step.condition.required),
            ("if not", step.condition.forbidden),
        ];
        for (word, pattern) in conditions {
            if let Some(pattern) = pattern {
                line(format_args!("<br/>{word} {}", Escaped(&shortened(pattern))))?;
            }
        }
        if !step.condition.is_empty() && step.when_unmet != SkipMode::Skip {
            line(format_args!(
                "<br/>when unmet: {}",
                step.when_unmet.as_str()
            ))?;
        }
        if step.when_exhausted != SkipMode::Fail {
            line(format_args!(
                "<br/>when exhausted: {}",
                step.when_exhausted.as_str()
            ))?;
        }
        if step.on_element_failure == ElementFailure::Null {
            line(format_args!("<br/>null where an element fails"))?;
        }
        Ok(())
    }
}

fn shortened(pattern: &str) -> String {
    match pattern.char_indices().nth(MAX_PATTERN) {
        Some((end, _)) => format!("{}…", &pattern[..end]),
        None => pattern.to_owned(),
    }
}

/// Text within a quoted label.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            // Letters of any script stand for themselves. Of the rest only what means nothing to
            // Mermaid or HTML: quotes end the label, `#` starts a code, a backquote Markdown, `%%{`
            // a directive, `\n` a line; a colon can make a code's semicolon vanish.
            if c.is_alphanumeric() || " _-,.{}[]()…".contains(c) {
                f.write_char(c)?;
            } else {
                write!(f, "#{};", u32::from(c))?;
            }
        }
        Ok(())
    }
}
