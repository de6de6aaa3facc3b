use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::worker::testing::{Act, claimed, output, shared};

async fn run_with(act: Option<Act>) -> Finished {
    run(&shared(act, 1), 0, claimed(2)).await
}

async fn failure(act: Option<Act>) -> Failure {
    run_with(act).await.result.expect_err("the attempt fails")
}

#[tokio::test(start_paused = true)]
async fn an_output_is_handed_on_with_the_attempt_that_it_speaks_for() {
    let start = Instant::now();
    let finished = run_with(Some(|_| Box::pin(async { Ok(output()) }))).await;
    assert_eq!(finished.result.expect("an output").get(), "\"output\"");
    assert_eq!(finished.key.attempt, 2);
    assert_eq!(finished.key.step_slug, "act");
    assert_eq!(finished.current_until - start, Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_its_timeout_and_no_more() {
    let in_time: Act = |_| {
        Box::pin(async {
            sleep(Duration::from_millis(59_900)).await;
            Ok(output())
        })
    };
    assert!(run_with(Some(in_time)).await.result.is_ok());
    let start = Instant::now();
    let failure = failure(Some(|_| Box::pin(std::future::pending()))).await;
    assert_eq!(start.elapsed().as_secs(), 60);
    assert!(
        failure
            .message
            .starts_with("the attempt timed out after 60 s;"),
        "{}",
        failure.message
    );
    assert!(!failure.retry.is_permanent());
}

#[tokio::test(start_paused = true)]
async fn panics_are_caught_wherever_they_happen() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("while dropping");
        }
    }

    struct BadPayload;
    impl Drop for BadPayload {
        fn drop(&mut self) {
            panic!("the payload's own words");
        }
    }

    let acts: [(Act, &str); 5] = [
        (
            |_| Box::pin(async { std::panic::panic_any(BadPayload) }),
            "the panic has no message",
        ),
        (
            |_| panic!("before the first await"),
            "before the first await",
        ),
        (
            |attempt| Box::pin(async move { panic!("attempt {attempt}") }),
            "attempt 2",
        ),
        (
            |_| Box::pin(async { std::panic::panic_any(7) }),
            "the panic has no message",
        ),
        (
            |_| {
                Box::pin(async {
                    let _guard = PanicsWhenDropped;
                    Ok(output())
                })
            },
            "while dropping",
        ),
    ];
    for (act, message) in acts {
        let failure = failure(Some(act)).await;
        assert_eq!(failure.message, format!("the handler panicked: {message}"));
        assert!(!failure.retry.is_permanent());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_dropped_has_timed_out_all_the_same() {
    let failure = failure(Some(|_| {
        Box::pin(async {
            let _odd = Odd {
                drops: true,
                ..Odd::default()
            };
            std::future::pending().await
        })
    }))
    .await;
    let message = failure.message;
    assert!(
        message.starts_with("the attempt timed out after 60 s;"),
        "{message}"
    );
    assert!(
        message.ends_with("the handler panicked when it was dropped: on drop"),
        "{message}"
    );
}

/// An error that panics where it is asked to.
#[derive(Debug, Default)]
struct Odd {
    prints: bool,
    sources: bool,
    drops: bool,
}

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        assert!(!self.prints, "on print");
        f.write_str("odd")
    }
}

impl std::error::Error for Odd {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        assert!(!self.sources, "on source");
        None
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        assert!(!self.drops, "on drop");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_an_error_does_its_attempt_fails_with_a_true_reason() {
    let acts: [(Act, &str); 5] = [
        (
            |_| {
                Box::pin(async {
                    Err(Odd {
                        prints: true,
                        ..Odd::default()
                    }
                    .into())
                })
            },
            "the handler failed, and its error panicked when it was printed: on print",
        ),
        (
            |_| {
                Box::pin(async {
                    Err(Odd {
                        sources: true,
                        ..Odd::default()
                    }
                    .into())
                })
            },
            "the handler failed, and its error panicked when it was printed: on source",
        ),
        (
            |_| {
                Box::pin(async {
                    Err(Odd {
                        drops: true,
                        ..Odd::default()
                    }
                    .into())
                })
            },
            "odd; the error panicked when it was dropped: on drop",
        ),
        (
            |_| {
                Box::pin(async {
                    Err(Odd {
                        prints: true,
                        sources: true,
                        drops: true,
                    }
                    .into())
                })
            },
            "the handler failed, and its error panicked when it was printed: on source; \
             the error panicked when it was dropped: on drop",
        ),
        (
            |_| {
                Box::pin(async {
                    Err(anyhow::Error::new(Odd {
                        prints: true,
                        ..Odd::default()
                    })
                    .into())
                })
            },
            "the handler failed, and its error panicked when it was printed: on print",
        ),
    ];
    for (act, message) in acts {
        let failure = failure(Some(act)).await;
        assert_eq!(failure.message, message);
        assert!(!failure.retry.is_permanent());
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_does_not_print_still_says_how_to_go_on() {
    let never = failure(Some(|_| {
        Box::pin(async {
            Err(StepError::permanent(Odd {
                prints: true,
                ..Odd::default()
            }))
        })
    }))
    .await;
    assert!(never.retry.is_permanent());
}

#[tokio::test(start_paused = true)]
async fn an_error_that_calls_itself_its_source_ends() {
    #[derive(Debug)]
    struct Endless;
    impl std::fmt::Display for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&"x".repeat(9000))
        }
    }
    impl std::error::Error for Endless {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(self)
        }
    }
    let failure = failure(Some(|_| Box::pin(async { Err(Endless.into()) }))).await;
    assert_eq!(failure.message.len(), 8192);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_dropped_panics_nowhere() {
    let shared = shared(
        Some(|_| {
            Box::pin(async {
                let _odd = Odd {
                    drops: true,
                    ..Odd::default()
                };
                std::future::pending().await
            })
        }),
        1,
    );
    let mut attempt = Box::pin(run(&shared, 0, claimed(1)));
    assert!(futures_util::poll!(&mut attempt).is_pending());
    drop(attempt);
}

#[tokio::test(start_paused = true)]
async fn an_error_says_how_to_go_on() {
    let later = failure(Some(|_| {
        Box::pin(async { Err(StepError::retry_after(Duration::from_secs(7), "busy")) })
    }))
    .await;
    assert_eq!(later.retry, Retry::After(7));
    let never = failure(Some(|_| {
        Box::pin(async { Err(StepError::permanent("gone")) })
    }))
    .await;
    assert_eq!(never.retry, Retry::Never);
    assert_eq!(never.message, "gone");
}

#[tokio::test(start_paused = true)]
async fn a_step_without_handler_fails_for_good() {
    let failure = failure(None).await;
    assert!(
        failure.message.contains("step `act` has no handler"),
        "{}",
        failure.message
    );
    assert!(failure.retry.is_permanent());
}

#[test]
fn an_output_that_postgres_can_not_store_is_refused() {
    let size = output().get().len();
    assert!(check_size(output(), size).is_ok());
    let error = check_size(output(), size - 1).expect_err("too large");
    assert!(error.is_permanent());
    assert!(
        error
            .message()
            .contains("has 8 bytes, Postgres can store 7;"),
        "{error}"
    );
}
