//! Values that users pass from step to step may be secret: they never appear in logs, errors,
//! tables of workers, or notifications.
//!
//! The message of a handler's own error is the user's text, and kept as it is; whatever pgflow
//! itself says names types and places only.

mod refusals;
mod watch;

use pgflow::client::{Client, ClientError, RunError};
use pgflow::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use sqlx::PgPool;
use uuid::Uuid;

use self::watch::{DATA, SECRET, Watch};
use super::{DEADLINE, define, lock_table, run_sql, start, until_held_up};
use crate::support::flows::{claim, claim_one, complete, worker as sql_worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{show_all, task};
use crate::support::runs::{age, requeue};

#[derive(Debug, Serialize, Deserialize)]
struct Account {
    token: String,
    kind: Kind,
    pin: Pin,
    /// The output of the last step, as JSON.
    output: String,
}

#[derive(Debug, Serialize, Deserialize)]
enum Kind {
    Personal,
}

/// Has a check of its own, which quotes what it refuses.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "u32")]
struct Pin(u32);

impl TryFrom<u32> for Pin {
    type Error = String;

    fn try_from(pin: u32) -> Result<Self, String> {
        if pin < 10_000 {
            Ok(Self(pin))
        } else {
            Err(format!("{SECRET} {pin} is too large"))
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Key {
    name: String,
}

/// Takes a secret through steps of every kind.
struct Vault;

#[flow(input = Account, max_attempts = 1)]
impl Vault {
    #[step]
    async fn list(input: &Account) -> StepResult<Vec<Key>> {
        let key = |n| Key {
            name: format!("{} {n}", input.token),
        };
        Ok(vec![key(1), key(2)])
    }

    #[step(map = list)]
    async fn open(item: &Key) -> StepResult<String> {
        Ok(item.name.clone())
    }

    #[step(depends_on = [open])]
    async fn seal(open: &[String], input: &Account) -> StepResult<Box<RawValue>> {
        assert_eq!(open.len(), 2);
        Ok(RawValue::from_string(input.output.clone())?)
    }
}

fn account() -> Value {
    json!({"token": SECRET, "kind": "Personal", "pin": 7, "output": format!("\"{SECRET}\"")})
}

fn account_with(key: &str, value: Value) -> Value {
    let mut account = account();
    account[key] = value;
    account
}

async fn start_with(pool: &PgPool, flow: &str, input: &Value) -> Uuid {
    crate::support::flows::start(pool, flow, input.clone()).await
}

/// Changes rows manually, without the value in the text of the statement, which is logged.
async fn tamper(pool: &PgPool, statement: &'static str, value: Value) {
    let changed = sqlx::query(statement).bind(value).execute(pool).await;
    assert_ne!(changed.unwrap().rows_affected(), 0);
}

/// Puts all that waits off until it is shown.
async fn hide_all(pool: &PgPool) {
    run_sql(pool, "update pgmq.q_vault set vt = vt + interval '1 day'").await;
}

/// The failure of a run that has failed.
async fn failure(watch: &mut Watch, run_id: Uuid) -> String {
    let client = Client::new(watch.database.pool.clone());
    let run = client.run::<Vault>(run_id);
    match run.wait().timeout(DEADLINE).await {
        Err(error @ RunError::Failed { .. }) => {
            watch.saw(&error);
            error.to_string()
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[tokio::test]
async fn a_run_that_completes_tells_nothing() {
    let mut watch = Watch::new().await;
    let pool = watch.database.pool.clone();
    let handle = start::<Vault>(&pool, ()).await;
    let client = Client::new(pool.clone());
    let run_id = start_with(&pool, "vault", &account()).await;
    let run = client.run::<Vault>(run_id);
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert!(output.seal.get().contains(SECRET));
    handle.stop().await.unwrap();

    // What does not fit is told by a client that reads it.
    let output = "update pgflow.runs set output = $1";
    tamper(&pool, output, json!([SECRET])).await;
    watch.saw(
        &run.snapshot()
            .await
            .unwrap()
            .output()
            .map(|_| ())
            .unwrap_err(),
    );
    let error = run.wait().await.map(|_| ()).unwrap_err();
    assert!(matches!(error, RunError::Output { .. }), "{error}");
    watch.saw(&error);

    assert!(!watch.lines().lines("outputs recorded").is_empty());
    assert!(!watch.lines().lines("sqlx::query").is_empty());
    let found = watch.assert_kept().await;
    assert_eq!(found.data, DATA);
    assert_eq!(found.messages, 0);
    assert!(found.notifications > 0);
}

#[tokio::test]
async fn what_can_not_be_read_is_named_by_place_and_type() {
    let mut watch = Watch::new().await;
    let pool = watch.database.pool.clone();
    define::<Vault>(&pool, ()).await;
    let mut runs = Vec::new();
    for (input, reason) in [
        (
            json!(SECRET),
            "invalid type (a string), expected struct Account",
        ),
        (json!([1, {"a": SECRET}]), "invalid type"),
        (
            json!({"token": {"a": SECRET}}),
            "at `token`: invalid type (an object), expected a string",
        ),
        (
            account_with("token", json!([SECRET])),
            "at `token`: invalid type (an array), expected a string",
        ),
        (
            account_with("kind", json!(SECRET)),
            "at `kind`: unknown variant, expected `Personal`",
        ),
        (
            account_with("kind", json!({SECRET: 1})),
            "at `kind`: unknown variant, expected `Personal`",
        ),
        (
            account_with("pin", json!(SECRET)),
            "at `pin`: invalid type (a string), expected u32",
        ),
        (
            account_with("pin", json!(10_000)),
            "the type's own check refused the value",
        ),
    ] {
        runs.push((start_with(&pool, "vault", &input).await, reason.to_owned()));
    }
    // Outputs that another build of the worker left.
    hide_all(&pool).await;
    let outputs = [
        (
            json!([{"name": SECRET}, {"name": SECRET}]),
            "completed",
            "the output of dependency `open`: at `[0]`: invalid type (an object), expected a string",
        ),
        (
            json!([{"name": 1}, {"name": {"a": SECRET}}]),
            "completed",
            "the element (`item`): at `name`: invalid type",
        ),
        (
            json!([SECRET]),
            "completed",
            "the element (`item`): invalid type (a string), expected struct Key",
        ),
        (
            json!(SECRET),
            "failed",
            "step \"list\", which must return an array; it returned string",
        ),
        (
            json!({"a": SECRET}),
            "failed",
            "step \"list\", which must return an array; it returned object",
        ),
    ];
    for (_, _, reason) in &outputs {
        let run_id = start_with(&pool, "vault", &account()).await;
        runs.push((run_id, (*reason).to_owned()));
    }
    let other = sql_worker(&pool, "vault").await;
    let tasks = claim(&pool, other, 100).await;
    for (n, (task, (output, status, _))) in tasks.iter().zip(outputs).enumerate() {
        assert_eq!(complete(&pool, task, output).await, status);
        if n == 0 {
            for element in claim(&pool, other, 2).await {
                complete(&pool, &element, json!({"a": SECRET})).await;
            }
        }
    }
    assert_eq!(tasks.len(), 5);
    show_all(&pool, "vault").await;

    let handle = start::<Vault>(&pool, ()).await;
    for (run_id, reason) in runs {
        let text = failure(&mut watch, run_id).await;
        assert!(text.contains(&reason), "{text}, expected {reason}");
    }
    handle.stop().await.unwrap();
    assert_invariants(&pool).await;
    assert!(!watch.lines().lines("attempt failed").is_empty());
    let found = watch.assert_kept().await;
    assert_eq!(found.messages, 0);
    assert!(!found.data.is_empty());
}

#[tokio::test]
async fn what_can_not_be_stored_is_not_quoted() {
    let mut watch = Watch::new().await;
    let pool = watch.database.pool.clone();
    let handle = start::<Vault>(&pool, ()).await;
    for (output, reason) in [
        (
            format!("\"{SECRET}\\u0000\""),
            "it contains the character U+0000",
        ),
        (
            format!("\"{SECRET} \\ud800\""),
            "it contains a `\\u` escape that is only one half of a surrogate pair",
        ),
        (
            format!("{{\"{SECRET}\": 1e999999}}"),
            "the database call failed",
        ),
    ] {
        let input = account_with("output", json!(output));
        let run_id = start_with(&pool, "vault", &input).await;
        let text = failure(&mut watch, run_id).await;
        let expected = format!("the step's output can't be stored: {reason}");
        assert!(text.contains(&expected), "{text}");
    }
    handle.stop().await.unwrap();

    let client = Client::new(pool.clone());
    let input: Account = serde_json::from_value(account_with("token", json!("hunter2\0"))).unwrap();
    let error = client.start::<Vault>(&input).await.unwrap_err();
    assert!(
        matches!(error, ClientError::UnstorableInput { .. }),
        "{error}"
    );
    watch.saw(&error);
    let json = RawValue::from_string(format!("\"{SECRET} \\ud800\"")).unwrap();
    define::<anything::Anything>(&pool, ()).await;
    let error = client.start::<anything::Anything>(&json).await.unwrap_err();
    // Postgres would quote what it could not read, and the debug form of the error, which is that
    // of sqlx, with it.
    assert!(
        matches!(error, ClientError::UnstorableInput { .. }),
        "{error}"
    );
    watch.saw(&error);
    assert_invariants(&pool).await;
    watch.assert_kept().await;
}

#[tokio::test]
async fn what_is_given_back_and_what_is_recovered_tells_nothing() {
    let mut watch = Watch::new().await;
    let pool = watch.database.pool.clone();
    let handle = start::<Vault>(&pool, ()).await;
    let block = lock_table(&pool, "pgflow.workers").await;
    until_held_up(&pool, "claim_tasks").await;
    let run_id = start_with(&pool, "vault", &account()).await;
    handle.shutdown();
    block.rollback().await.unwrap();
    handle.join().await.unwrap();
    assert_eq!(task(&pool, run_id, "list").await.status, "queued");
    assert!(
        !watch
            .lines()
            .lines("claimed tasks were given back")
            .is_empty()
    );

    // The next worker never answers; one attempt is all there is.
    let silent = sql_worker(&pool, "vault").await;
    claim_one(&pool, silent).await;
    age(&pool, run_id, "list", 3600).await;
    assert_eq!(requeue(&pool).await, 0);
    let text = failure(&mut watch, run_id).await;
    assert!(text.contains("stalled: attempt "), "{text}");
    assert_invariants(&pool).await;
    let found = watch.assert_kept().await;
    assert_eq!((found.data, found.messages), (vec![DATA[0].to_owned()], 0));
}

/// Takes any JSON.
mod anything {
    use super::*;

    pub(super) struct Anything;

    #[flow(input = Box<RawValue>)]
    impl Anything {
        #[step]
        async fn measure(input: Box<RawValue>) -> StepResult<usize> {
            Ok(input.get().len())
        }
    }
}
