use sqlx::postgres::PgPoolOptions;

use super::*;
use crate::worker::{WorkerOptions, testing};

fn pool() -> PgPool {
    PgPoolOptions::new()
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .expect("a valid URL")
}

fn shared(pool: &PgPool, listen: bool) -> Arc<Shared> {
    let mut shared = testing::shared(None, 1);
    let inner = Arc::get_mut(&mut shared).expect("nobody else has it");
    inner.pool = pool.clone();
    inner.worker_id = Uuid::now_v7();
    inner.options = WorkerOptions {
        listen,
        ..testing::options("play")
    };
    shared
}

fn join(hub: &Hub, shared: &Arc<Shared>) {
    hub.join(Member {
        shared: Arc::clone(shared),
        span: Span::none(),
    });
}

fn heartbeat(shared: &Shared, is_deprecated: bool) -> Heartbeat {
    Heartbeat {
        worker_id: shared.worker_id,
        is_deprecated,
        deprecated_reason: None,
    }
}

#[tokio::test]
async fn clones_of_a_pool_have_one_hub_and_other_pools_have_others() {
    let pool = pool();
    let hub = Hub::of(&pool);
    assert!(Arc::ptr_eq(&hub, &Hub::of(&pool.clone())));
    assert!(!Arc::ptr_eq(&hub, &Hub::of(&self::pool())));
    // As somebody does who renews a password.
    pool.set_connect_options(pool.connect_options().as_ref().clone());
    assert!(Arc::ptr_eq(&hub, &Hub::of(&pool)));
}

#[tokio::test]
async fn the_hub_goes_with_its_last_member() {
    let pool = pool();
    let (first, second) = (shared(&pool, true), shared(&pool, true));
    let attendances = [attend(&first), attend(&second)];
    let hub = Arc::downgrade(&attendances[0].hub);
    let [first, second] = attendances;
    drop(first);
    assert_eq!(hub.upgrade().unwrap().members().len(), 1);
    drop(second);
    // The tasks of the two are dropped by the runtime.
    while hub.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_hub_listens_while_a_member_wants_that() {
    let pool = pool();
    let hub = Hub::of(&pool);
    let (deaf, hearing) = (shared(&pool, false), shared(&pool, true));
    join(&hub, &deaf);
    assert!(!*hub.listens.borrow());
    join(&hub, &hearing);
    assert!(*hub.listens.borrow());
    hub.leave(hearing.worker_id);
    assert!(!*hub.listens.borrow());
}

#[tokio::test]
async fn each_member_hears_what_is_said_about_it() {
    let pool = pool();
    let hub = Hub::of(&pool);
    let [alive, deprecated, unknown, late, gone] = [(); 5].map(|()| shared(&pool, true));
    for member in [&alive, &deprecated, &unknown, &gone] {
        join(&hub, member);
    }
    let mut asked: Vec<Uuid> = hub.members().iter().map(|m| m.shared.worker_id).collect();
    asked.sort_unstable();
    // After the question.
    join(&hub, &late);
    hub.leave(gone.worker_id);
    hub.hear(
        &asked,
        &[heartbeat(&deprecated, true), heartbeat(&alive, false)],
    );
    for member in [&alive, &late, &gone] {
        assert!(!member.stop.is_requested());
    }
    assert!(deprecated.stop.is_requested() && deprecated.stop.result().is_ok());
    let Err(WorkerError::NotRegistered(error)) = unknown.stop.result() else {
        panic!("it goes on");
    };
    let id = unknown.worker_id.to_string();
    assert!(error.to_string().contains(&id), "{error}");
}
