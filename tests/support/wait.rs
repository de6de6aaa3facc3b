//! Waiting for what will come.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

/// The interval between two checks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `look` finds something, and returns it. Fails the test, saying `what` did not come,
/// at the deadline.
///
/// ```ignore
/// eventually(Duration::from_secs(20), "the run completes", async || {
///     (status(&pool, run).await == "completed").then_some(())
/// })
/// .await;
/// ```
#[track_caller]
pub(crate) fn eventually<T>(
    deadline: Duration,
    what: impl Display,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let found = tokio::time::timeout(deadline, async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        let Ok(found) = found.await else {
            panic!("did not come within {deadline:?}: {what} (waited for at {caller})");
        };
        found
    }
}

mod tests {
    use std::time::Duration;

    use super::eventually;

    #[tokio::test]
    async fn looks_until_it_finds() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(20), "the third look", async || {
            looks += 1;
            (looks == 3).then_some("found")
        });
        assert_eq!(found.await, "found");
        assert_eq!(looks, 3);
    }

    #[tokio::test]
    #[should_panic(
        expected = "did not come within 30ms: the moon (waited for at tests/support/wait.rs"
    )]
    async fn names_what_did_not_come() {
        eventually(Duration::from_millis(30), "the moon", async || None::<()>).await;
    }

    #[tokio::test]
    #[should_panic(expected = "an answer")]
    async fn a_look_without_end_has_the_same_deadline() {
        eventually(Duration::from_millis(30), "an answer", async || {
            std::future::pending::<Option<()>>().await
        })
        .await;
    }
}
