//! From what a handler returned to what the worker reports.

use serde_json::value::RawValue;

use super::{
    EncodeError, HandlerFuture, StepError,
    encode::{AsJson, to_json},
    stored::Codec,
};
use crate::contained::contain;

/// The types that can stand for the error of a step.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be used as the error of a step",
    label = "can't become a `StepError`",
    note = "implement `std::error::Error`, `Send` and `Sync` for it, or return `anyhow::Result<_>` or `StepResult<_>`"
)]
pub trait StepFailure {
    /// Keeps the cause and what it says about further attempts.
    fn into_step_error(self) -> StepError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<StepError>> StepFailure for E {
    fn into_step_error(self) -> StepError {
        self.into()
    }
}

/// The types that a step can return.
///
/// Outputs are read from the return type as it is written, so an alias that hides a part of the
/// output is no use.
#[diagnostic::on_unimplemented(
    message = "the return type of a step must name its whole output, as `Result<{T}, _>` would; this one is `{Self}`",
    label = "names `{T}` as the output, but is a `{Self}`",
    note = "write the output out, as in `StepResult<Output>`; an alias must have the output as its first argument, unchanged"
)]
pub trait StepReturn<T, E> {
    /// Itself.
    fn into_result(self) -> Result<T, E>;
}

#[diagnostic::do_not_recommend]
impl<T, E> StepReturn<T, E> for Result<T, E> {
    fn into_result(self) -> Self {
        self
    }
}

/// The return types that name their output, which an alias without arguments does not: none.
#[diagnostic::on_unimplemented(
    message = "a step must return a `Result` that names its output; this one is an alias of `{Self}`",
    label = "the output is not written here",
    note = "write the output type here, as in `Result<Output, Error>`"
)]
pub trait NamesItsOutput {}

/// Stands for the body of a handler whose output is not named; such a program does not compile.
pub fn alias<R: NamesItsOutput>() -> HandlerFuture<'static> {
    poison()
}

/// Encodes an output; one that can't be stored would fail again, so it fails permanently.
pub fn finish<T, E, R>(returned: R, codec: &Codec<T>) -> Result<Box<RawValue>, StepError>
where
    R: StepReturn<T, E>,
    E: StepFailure,
{
    // Without closures, each of which the compiler would build once for each step.
    match returned.into_result() {
        Err(error) => Err(error.into_step_error()),
        Ok(output) => encoded((codec.as_json)(&output), codec.may_be_null),
    }
}

/// A panic ends here: the output may panic as well when it is dropped, and that of an unwinding
/// thread ends the process.
fn encoded(output: &dyn AsJson, may_be_null: bool) -> Result<Box<RawValue>, StepError> {
    match contain(|| to_json(output)) {
        Ok(Ok(json)) if !may_be_null && json.get() == "null" => {
            Err(unstorable(&EncodeError::FailedElement))
        }
        Ok(Ok(json)) => Ok(json),
        Ok(Err(error)) => Err(unstorable(&error)),
        Err(panic) => Err(StepError::from(format!(
            "the step's output can't be stored: its `Serialize` panicked: {panic}"
        ))),
    }
}

#[cold]
fn unstorable(error: &EncodeError) -> StepError {
    StepError::permanent(format!("the step's output can't be stored: {error}"))
}

/// Stands for a value whose mistake is reported; such a program does not compile.
pub fn poison<T>() -> T {
    unreachable!("a value that was reported as an error")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::stored::codec;

    #[test]
    fn an_output_becomes_json() {
        let output = finish::<_, String, _>(Ok(vec![1, 2]), &codec()).expect("storable");
        assert_eq!(output.get(), "[1,2]");
    }

    #[test]
    fn an_output_with_nul_fails_for_good() {
        let error =
            finish::<_, String, _>(Ok("a\0".to_owned()), &codec()).expect_err("not storable");
        assert!(error.is_permanent());
        assert!(
            error
                .message()
                .starts_with("the step's output can't be stored: it contains the character U+0000")
        );
    }

    #[test]
    fn any_error_becomes_a_step_error() {
        let error = finish::<(), _, _>(Err(anyhow::anyhow!("down").context("fetching")), &codec())
            .expect_err("failed");
        assert!(!error.is_permanent());
        assert_eq!(error.message(), "fetching: down");
        let error = finish::<(), _, _>(Err("down"), &codec()).expect_err("failed");
        assert_eq!(error.message(), "down");
    }
}
