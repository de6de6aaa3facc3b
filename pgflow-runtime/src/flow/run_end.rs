//! The end of a run, as a step gets it that runs after it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{DecodeError, StepId, decode};

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunStatus {
    /// Some step has not ended.
    Started,
    /// Every step completed or was skipped.
    Completed,
    /// A step failed the run.
    Failed,
}

/// The end of a run: the parameter `end` of a step with `on = failure` or `on = end`.
///
/// ```
/// # use pgflow_runtime::flow as pgflow;
/// use pgflow::{RunEnd, StepResult};
///
/// async fn alarm(end: &RunEnd) -> StepResult<()> {
///     let step = end.failed_step.as_deref().unwrap_or("no step");
///     println!("{step} failed the run: {}", end.error.as_deref().unwrap_or_default());
///     Ok(())
/// }
/// ```
///
/// A test that calls such a step makes one with [`completed`](Self::completed) or
/// [`failed`](Self::failed).
#[derive(Clone, Deserialize)]
#[non_exhaustive]
pub struct RunEnd {
    /// The status with which the run ended; never [`Started`](RunStatus::Started).
    pub status: RunStatus,
    /// The slug of the step that failed the run, if one did.
    pub failed_step: Option<String>,
    /// The error of the run, if it failed: the message of the last attempt of that step, or that
    /// its condition did not hold.
    pub error: Option<String>,
    /// The outputs of all steps that had completed, as JSON by slug; that of a map step is the list
    /// of its elements' outputs.
    pub outputs: BTreeMap<String, Box<RawValue>>,
}

impl RunEnd {
    /// The output of a step; none when the step had not completed.
    ///
    /// `T` is the type that dependents of the step take: of a map step a `Vec`.
    ///
    /// # Errors
    ///
    /// Fails if the stored output is not a `T`.
    pub fn output<T: DeserializeOwned>(&self, step: impl StepId) -> Result<Option<T>, DecodeError> {
        let slug = step.slug();
        let Some(json) = self.outputs.get(slug) else {
            return Ok(None);
        };
        let unreadable = |misfit| DecodeError::new(format!("output of step `{slug}`"), misfit);
        decode(json).map(Some).map_err(unreadable)
    }

    /// The end of a completed run, without outputs: for a test that calls a step directly.
    pub fn completed() -> Self {
        Self {
            status: RunStatus::Completed,
            failed_step: None,
            error: None,
            outputs: BTreeMap::new(),
        }
    }

    /// The end of a run that a step failed, without outputs: for a test that calls a step directly.
    pub fn failed(step: impl StepId, error: impl Into<String>) -> Self {
        Self {
            status: RunStatus::Failed,
            failed_step: Some(step.slug().to_owned()),
            error: Some(error.into()),
            outputs: BTreeMap::new(),
        }
    }

    /// The same with the output of one more step: for a test that calls a step directly.
    ///
    /// # Panics
    ///
    /// Panics if the output does not serialise to JSON.
    #[track_caller]
    #[must_use]
    pub fn with_output(mut self, step: impl StepId, output: &impl Serialize) -> Self {
        let json = to_raw_value(output).expect("the output serialises to JSON");
        self.outputs.insert(step.slug().to_owned(), json);
        self
    }
}

impl fmt::Debug for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Outputs may be large, and secret.
        f.debug_struct("RunEnd")
            .field("status", &self.status)
            .field("failed_step", &self.failed_step)
            .field("outputs", &self.outputs.keys())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    struct Step(&'static str);

    impl fmt::Display for Step {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StepId for Step {
        const ALL: &'static [Self] = &[Self("parse"), Self("report")];

        fn slug(self) -> &'static str {
            self.0
        }

        fn index(self) -> usize {
            0
        }
    }

    #[test]
    fn it_is_read_as_the_database_writes_it() {
        let json = r#"{"status": "failed", "failed_step": "report", "error": "no", "outputs": {"parse": [1, 2]}}"#;
        let end: RunEnd = serde_json::from_str(json).expect("an end");
        assert_eq!(end.status, RunStatus::Failed);
        assert_eq!(end.failed_step.as_deref(), Some("report"));
        assert_eq!(end.error.as_deref(), Some("no"));
        assert_eq!(end.output(Step("parse")), Ok(Some(vec![1, 2])));
        assert_eq!(end.output::<u8>(Step("report")), Ok(None));
        let error = end.output::<Vec<bool>>(Step("parse")).expect_err("numbers");
        assert!(
            error
                .to_string()
                .starts_with("output of step `parse`: at `[0]`: invalid type "),
            "{error}"
        );
    }

    #[test]
    fn a_test_makes_one_and_its_outputs_are_not_shown() {
        let end = RunEnd::failed(Step("report"), "no").with_output(Step("parse"), &"hunter2");
        assert_eq!(end.output(Step("parse")), Ok(Some("hunter2".to_owned())));
        assert_eq!(
            format!("{end:?}"),
            r#"RunEnd { status: Failed, failed_step: Some("report"), outputs: ["parse"], .. }"#
        );
        assert_eq!(RunEnd::completed().status, RunStatus::Completed);
    }
}
