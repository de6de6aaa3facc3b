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
    hub.core.join(Member {
        shared: Arc::clone(shared),
        span: Span::none(),
        dispatch: Dispatch::none(),
        runtime: Handle::current(),
    });
}

fn answer(shared: &Shared, is_deprecated: bool) -> Heartbeat {
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
async fn the_hub_and_its_work_go_with_its_last_member() {
    let pool = pool();
    let (first, second) = (shared(&pool, true), shared(&pool, true));
    let [first, second] = [attend(&first), attend(&second)];
    let (hub, core) = (Arc::downgrade(&first.hub), Arc::downgrade(&first.hub.core));
    drop(first);
    assert_eq!(hub.upgrade().unwrap().core.members().len(), 1);
    drop(second);
    assert!(hub.upgrade().is_none());
    // The work is dropped by its own thread.
    while core.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Handlers can't keep it from that: none of its tasks is theirs.
#[test]
fn a_hub_outlives_the_runtime_of_the_worker_that_made_it() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    };
    let (first, second) = (runtime(), runtime());
    let attend = |runtime: &tokio::runtime::Runtime, pool: &PgPool| {
        runtime.block_on(async { attend(&shared(pool, true)) })
    };
    let pool = first.block_on(async { pool() });
    let gone = attend(&first, &pool);
    let stays = attend(&second, &pool);
    drop(gone);
    drop(first);
    let work = stays.hub.work.get().expect("it was started");
    second.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
    assert!(!work.is_finished());
    assert_eq!(stays.hub.core.members().len(), 1);
}

#[tokio::test]
async fn connections_are_named_after_the_flow_unless_the_pool_names_them() {
    let pool = pool();
    let hub = Hub::of(&pool);
    join(&hub, &shared(&pool, true));
    let name = || {
        let options = hub.core.connect_options();
        options.get_application_name().map(ToOwned::to_owned)
    };
    assert_eq!(name().as_deref(), Some("pgflow play"));
    let named = pool.connect_options().as_ref().clone();
    pool.set_connect_options(named.application_name("audit"));
    assert_eq!(name().as_deref(), Some("audit"));
}

#[tokio::test]
async fn the_hub_listens_while_a_member_wants_that() {
    let pool = pool();
    let hub = Hub::of(&pool);
    let (deaf, hearing) = (shared(&pool, false), shared(&pool, true));
    join(&hub, &deaf);
    let listens = || *hub.core.listens.borrow();
    assert!(!listens());
    join(&hub, &hearing);
    assert!(listens());
    hub.core.leave(hearing.worker_id);
    assert!(!listens());
}

#[tokio::test]
async fn each_member_does_as_its_own_answer_says() {
    let pool = pool();
    let hub = Hub::of(&pool);
    let [alive, deprecated, unknown, late] = [(); 4].map(|()| shared(&pool, true));
    for member in [&alive, &deprecated, &unknown] {
        join(&hub, member);
    }
    let asked = hub.core.members();
    join(&hub, &late);
    let answers = [answer(&deprecated, true), answer(&alive, false)];
    heartbeat::apply(&asked, &answers, 1);
    for member in [&alive, &late] {
        assert!(!member.stop.is_requested());
    }
    assert!(deprecated.stop.is_requested() && deprecated.stop.result().is_ok());
    assert_eq!(deprecated.stop.deprecated(), Some(""));
    let Err(WorkerError::NotRegistered(error)) = unknown.stop.result() else {
        panic!("it goes on");
    };
    let id = unknown.worker_id.to_string();
    assert!(error.to_string().contains(&id), "{error}");
}
