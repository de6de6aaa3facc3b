//! Following runs. Where a stream looks by itself only after an hour, all that it tells in time was
//! heard of.

use std::time::Duration;

use pgflow::client::{Client, ClientError, RunEvent, RunEvents, RunHandle, SkipReason};
use pgflow::sqlx::postgres::PgPoolOptions;
use tokio::time::timeout;
use uuid::Uuid;

use super::callers::{Callers, DEADLINE, HOUR};
use crate::support::events::set_event_level;
use crate::support::eventually;

mod parcel {
    use pgflow::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) struct Input {
        pub(super) items: Vec<i64>,
        pub(super) gift: bool,
    }

    pub(super) struct Parcel;

    #[flow(input = Input, max_attempts = 1)]
    impl Parcel {
        #[step]
        async fn pack(input: &Input) -> StepResult<Vec<i64>> {
            Ok(input.items.clone())
        }

        #[step(if = { gift: true })]
        async fn wrap() -> StepResult<i64> {
            Ok(1)
        }

        #[step(map = pack)]
        async fn label(item: i64) -> StepResult<i64> {
            if item < 0 {
                Err("a negative item")?;
            }
            Ok(item)
        }

        #[step(depends_on = [label, wrap])]
        async fn send(label: &[i64], wrap: Option<i64>) -> StepResult<i64> {
            Ok(wrap.unwrap_or_default() + label.iter().sum::<i64>())
        }
    }
}

mod later {
    use pgflow::prelude::*;

    pub(super) struct Later;

    #[flow(input = ())]
    impl Later {
        #[step]
        async fn now() -> StepResult<()> {
            Ok(())
        }

        #[step(depends_on = [now], start_delay = "1h")]
        async fn then(now: ()) -> StepResult<()> {
            Ok(now)
        }
    }
}

use later::{Later, Step as LaterStep};
use parcel::{Input, Parcel, Step};

const ALL: [&str; 9] = [
    "run started",
    "wrap skipped",
    "pack started with 1",
    "pack completed",
    "label started with 3",
    "label completed",
    "send started with 1",
    "send completed",
    "run completed",
];

async fn started(client: &Client, items: &[i64]) -> RunHandle<Parcel> {
    let input = Input {
        items: items.to_vec(),
        gift: false,
    };
    client.start::<Parcel>(&input).await.unwrap()
}

/// The event; none where the map continues, which depends on the moments of looks.
fn describe(event: RunEvent<Step>) -> Option<String> {
    Some(match event {
        RunEvent::RunStarted { .. } => "run started".to_owned(),
        RunEvent::StepStarted { step, tasks, .. } => format!("{} started with {tasks}", name(step)),
        RunEvent::StepProgressed { step, tasks, .. } => {
            assert_eq!((step, tasks.total), (Step::Label, 3));
            assert!((1..3).contains(&tasks.completed), "{tasks:?}");
            return None;
        }
        RunEvent::StepCompleted { step, .. } => format!("{} completed", name(step)),
        RunEvent::StepFailed { step, message, .. } => format!("{} failed: {message}", name(step)),
        RunEvent::StepSkipped { step, reason, .. } => {
            assert_eq!(reason, SkipReason::ConditionUnmet);
            format!("{} skipped", name(step))
        }
        RunEvent::RunCompleted { .. } => "run completed".to_owned(),
        RunEvent::RunFailed { step, message, .. } => {
            format!("run failed at {}: {message}", name(step.unwrap()))
        }
        other => panic!("{other:?}"),
    })
}

fn name(step: Step) -> &'static str {
    use pgflow::StepId;
    step.slug()
}

/// All events until the stream ends.
async fn all(mut events: RunEvents<Parcel>) -> Vec<String> {
    let told = async {
        let mut told = Vec::new();
        while let Some(event) = events.next().await {
            told.extend(describe(event.unwrap()));
        }
        assert!(events.next().await.is_none(), "it has ended");
        told
    };
    timeout(DEADLINE, told).await.expect("the stream ends")
}

#[tokio::test]
async fn each_transition_is_told_once_and_in_order_at_every_event_level() {
    let callers = Callers::of::<Parcel>(4).await;
    for level in ["off", "runs", "all"] {
        set_event_level(&callers.database.pool, level).await;
        let run = started(&callers.client, &[1, 2, 3]).await;
        let events = tokio::spawn(all(run.events().await.unwrap()));
        let worker = callers.work::<Parcel>().await;
        assert_eq!(events.await.unwrap(), ALL, "level {level}");
        callers.stop(worker).await;
    }
}

#[tokio::test]
async fn a_map_without_tasks_starts_and_completes() {
    let callers = Callers::of::<Parcel>(4).await;
    let worker = callers.work::<Parcel>().await;
    let run = started(&callers.client, &[]).await;
    let mut expected = ALL.map(str::to_owned);
    expected[4] = "label started with 0".to_owned();
    assert_eq!(all(run.events().await.unwrap()).await, expected);
    callers.stop(worker).await;
}

#[tokio::test]
async fn a_failed_run_is_told_after_the_step_that_failed_it() {
    let callers = Callers::of::<Parcel>(4).await;
    let worker = callers.work::<Parcel>().await;
    let run = started(&callers.client, &[-1]).await;
    let told = all(run.events().await.unwrap()).await;
    let mut expected = ALL[..4].to_vec();
    expected.extend([
        "label started with 1",
        "label failed: a negative item",
        "run failed at label: a negative item",
    ]);
    assert_eq!(told, expected);
    callers.stop(worker).await;
}

#[tokio::test]
async fn a_run_that_has_ended_is_told_at_once_and_without_a_connection() {
    let callers = Callers::of::<Parcel>(2).await;
    let worker = callers.work::<Parcel>().await;
    let quiet = Client::new(callers.database.pool.clone()).listen(false);
    let run = started(&quiet, &[1, 2, 3]).await;
    run.wait().timeout(DEADLINE).await.unwrap();
    let run = callers.client.run::<Parcel>(run.run_id());
    let events = run.events().poll_interval(HOUR).await.unwrap();
    assert_eq!(all(events).await, ALL);
    assert!(callers.lines().await.is_empty());
    callers.stop(worker).await;
}

#[tokio::test]
async fn what_happens_between_two_looks_is_told_when_the_end_is_heard_of() {
    let callers = Callers::of::<Parcel>(2).await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let events = run.events().poll_interval(HOUR).await.unwrap();
    let events = tokio::spawn(all(events));
    callers.until_listening(None).await;
    let worker = callers.work::<Parcel>().await;
    assert_eq!(events.await.unwrap(), ALL);
    callers.stop(worker).await;
}

#[tokio::test]
async fn at_level_all_the_events_of_steps_are_heard_of() {
    let callers = Callers::of::<Later>(2).await;
    set_event_level(&callers.database.pool, "all").await;
    let run = callers.client.start::<Later>(&()).await.unwrap();
    let mut events = run.events().poll_interval(HOUR).await.unwrap();
    let mut next = async || {
        let next = timeout(DEADLINE, events.next()).await;
        next.expect("it is heard of").unwrap().unwrap()
    };
    assert!(matches!(next().await, RunEvent::RunStarted { .. }));
    let step = LaterStep::Now;
    assert!(matches!(next().await, RunEvent::StepStarted { step: s, .. } if s == step));
    let (event, worker) = tokio::join!(next(), async {
        callers.until_listening(None).await;
        callers.work::<Later>().await
    });
    assert!(matches!(event, RunEvent::StepCompleted { step: s, .. } if s == step));
    let step = LaterStep::Then;
    assert!(matches!(next().await, RunEvent::StepStarted { step: s, .. } if s == step));
    callers.stop(worker).await;
}

#[tokio::test]
async fn no_event_is_lost_with_who_stops_waiting_for_it() {
    let callers = Callers::of::<Parcel>(4).await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let mut events = run.events().await.unwrap();
    let worker = callers.work::<Parcel>().await;
    let mut told = Vec::new();
    let mut stops = 0;
    eventually(DEADLINE, "the stream ends", async || {
        match timeout(Duration::from_micros(200), events.next()).await {
            Ok(Some(event)) => told.extend(describe(event.unwrap())),
            Ok(None) => return Some(()),
            Err(_elapsed) => stops += 1,
        }
        None
    })
    .await;
    assert_eq!(told, ALL);
    assert!(stops > 0);
    callers.stop(worker).await;
}

#[tokio::test]
async fn the_end_is_told_though_the_connection_was_lost() {
    let callers = Callers::of::<Parcel>(2).await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let events = run.events().poll_interval(HOUR).await.unwrap();
    let events = tokio::spawn(all(events));
    callers.lose_line().await;
    let worker = callers.work::<Parcel>().await;
    assert_eq!(events.await.unwrap(), ALL);
    callers.stop(worker).await;
}

#[tokio::test]
async fn waits_and_streams_share_one_connection_and_leave_none_behind() {
    let callers = Callers::of::<Parcel>(2).await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let wait = run.wait().poll_interval(HOUR);
    let waiting = tokio::spawn(async move { wait.await.map(|output| output.send) });
    let line = callers.until_listening(None).await;
    let mut dropped = run.events().await.unwrap();
    while timeout(Duration::from_secs(1), dropped.next())
        .await
        .is_ok()
    {}
    assert_eq!(callers.lines().await, [line]);
    waiting.abort();
    drop(dropped);
    callers.until_none_listens().await;
}

#[tokio::test]
async fn a_client_that_does_not_listen_follows_by_looking() {
    let callers = Callers::of::<Parcel>(1).await;
    let worker = callers.work::<Parcel>().await;
    let client = callers.client.clone().listen(false);
    let run = started(&client, &[1, 2, 3]).await;
    let events = run.events().poll_interval(Duration::from_millis(20)).await;
    assert_eq!(all(events.unwrap()).await, ALL);
    assert!(callers.lines().await.is_empty());
    callers.stop(worker).await;
}

#[tokio::test]
async fn a_run_that_is_deleted_is_an_error_and_ends_the_stream() {
    let callers = Callers::of::<Parcel>(2).await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let mut events = run.events().await.unwrap();
    for expected in &ALL[..3] {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!(describe(event).unwrap(), *expected);
    }
    sqlx::query("select pgflow.delete_flow_and_data('parcel')")
        .execute(&callers.database.pool)
        .await
        .unwrap();
    let error = timeout(DEADLINE, events.next()).await.unwrap();
    let error = error.expect("an item").unwrap_err();
    assert!(
        matches!(error, ClientError::NotFound { run_id } if run_id == run.run_id()),
        "{error}"
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn what_can_not_be_followed_is_refused_at_once() {
    let callers = Callers::of::<Parcel>(2).await;
    let unknown = callers.client.run::<Parcel>(Uuid::now_v7());
    let error = unknown.events().await.unwrap_err();
    assert!(
        matches!(error, ClientError::NotFound { run_id } if run_id == unknown.run_id()),
        "{error}"
    );
    let run = started(&callers.client, &[]).await;
    let mistaken = callers.client.run::<Later>(run.run_id());
    let error = mistaken.events().await.unwrap_err();
    assert!(
        matches!(error, ClientError::OtherFlow { expected: "later", ref actual, .. } if actual == "parcel"),
        "{error}"
    );
    callers.pool.close().await;
    let error = run.events().await.unwrap_err();
    assert!(matches!(error, ClientError::Database(_)), "{error}");
}

#[tokio::test]
async fn a_stream_outlives_its_connections_and_not_its_pool() {
    let callers = Callers::of::<Parcel>(2).await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let mut failing = run.events().await.unwrap();
    let events = tokio::spawn(all(run.events().await.unwrap()));
    for _ in 0..5 {
        let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'caller' and datname = current_database()";
        eventually(DEADLINE, "the caller is connected", async || {
            let cut: i64 = sqlx::query_scalar(cut)
                .fetch_one(&callers.database.pool)
                .await
                .unwrap();
            (cut > 0).then_some(())
        })
        .await;
    }
    let worker = callers.work::<Parcel>().await;
    assert_eq!(events.await.unwrap(), ALL);
    callers.stop(worker).await;

    for _ in 0..3 {
        failing.next().await.unwrap().unwrap();
    }
    callers.pool.close().await;
    let error = failing.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Database(_)), "{error}");
    assert!(failing.next().await.is_none());
    callers.until_none_listens().await;
}

#[tokio::test]
async fn following_needs_no_more_rights_than_waiting() {
    let callers = Callers::of::<Parcel>(2).await;
    let worker = callers.work::<Parcel>().await;
    let run = started(&callers.client, &[1, 2, 3]).await;
    let role = callers.database.as_role("app").await;
    let grants = format!(
        "grant usage on schema pgflow to {0}; grant select on pgflow.runs, pgflow.step_states to {0}",
        role.name
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(grants))
        .execute(&callers.database.pool)
        .await
        .unwrap();
    let pool = PgPoolOptions::new().connect(&role.url).await.unwrap();
    let run = Client::new(pool).run::<Parcel>(run.run_id());
    assert_eq!(all(run.events().await.unwrap()).await, ALL);
    callers.stop(worker).await;
}
