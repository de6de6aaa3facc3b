//! The recipe of `docs/roles.md`, run as it stands there, and what the roles that it makes may and
//! may not do.

mod application;
mod definer;
mod reader;
mod recipe;
mod recipe_file;
mod worker;

use std::time::Duration;

use pgflow::prelude::*;
use sqlx::postgres::{PgExecutor, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor};
use tokio::sync::Mutex;

use crate::support::invariants::TRANSITION_LOG;
use crate::support::{TestDb, eventually};
use recipe_file::Recipe;

const DEADLINE: Duration = Duration::from_secs(20);

/// Groups belong to the whole server: one test at a time makes them.
static GROUPS: Mutex<()> = Mutex::const_new(());

/// A flow with a step that is retried, a map, and a step that asks for the flow's input by itself.
struct Orders;

#[flow(input = Vec<u32>)]
impl Orders {
    #[step]
    async fn list(input: Vec<u32>, ctx: &StepContext) -> StepResult<Vec<u32>> {
        if ctx.attempt() == 1 {
            return Err(StepError::retry_after(Duration::ZERO, "not yet"));
        }
        Ok(input)
    }

    #[step(map = list)]
    async fn double(item: u32) -> StepResult<u32> {
        if item == 0 {
            return Err(StepError::permanent("nothing is no amount"));
        }
        Ok(item * 2)
    }

    #[step(depends_on = [double])]
    async fn sum(double: Vec<u32>, ctx: &StepContext) -> anyhow::Result<(usize, u32)> {
        let input: Vec<u32> = ctx.flow_input().await?;
        Ok((input.len(), double.iter().sum()))
    }
}

/// A database that a role without superuser rights owns and has migrated, with the groups and their
/// rights.
struct Installed {
    db: TestDb,
    owner: PgPool,
}

impl Installed {
    async fn new() -> Self {
        let installed = Self::without_rights().await;
        make_groups(&installed.db.pool).await;
        installed.grant().await;
        installed
    }

    /// Without the rights of the groups.
    async fn without_rights() -> Self {
        let db = TestDb::blank().await;
        let owner = db.as_role("owner").await.pool;
        pgflow::migrate(&owner).await.expect("the owner migrates");
        run(&owner, TRANSITION_LOG).await;
        Self { db, owner }
    }

    /// Does the work of the owner after each migration.
    async fn grant(&self) {
        run(&self.owner, &Recipe::read().grants).await;
    }

    /// Runs a block of the recipe that makes a login role, under a name that no other test uses;
    /// connects as that role.
    async fn login(&self, block: &str, role: &str) -> PgPool {
        let block = block.replace("orders_", &format!("{}_", self.db.name));
        run(&self.db.pool, &block).await;
        self.connect(role).await
    }

    async fn worker(&self) -> PgPool {
        self.login(&Recipe::read().worker, "worker").await
    }

    async fn reader(&self) -> PgPool {
        self.login(&Recipe::read().reader, "reader").await
    }

    /// A login role with these memberships or rights, written with `{}` for the role.
    async fn role(&self, role: &str, rights: &str) -> PgPool {
        let name = self.name_of(role);
        run(&self.db.pool, &format!("create role {name} login")).await;
        run(&self.db.pool, &rights.replace("{}", &name)).await;
        self.connect(role).await
    }

    fn name_of(&self, role: &str) -> String {
        format!("{}_{role}", self.db.name)
    }

    fn url_of(&self, role: &str) -> String {
        let name = self.name_of(role);
        self.db
            .url
            .replacen("//postgres@", &format!("//{name}@"), 1)
    }

    async fn connect(&self, role: &str) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(10);
        let pool = pool.connect(&self.url_of(role)).await;
        pool.expect("the role may log in")
    }
}

/// Does the work of a role that may create roles, once per server.
async fn make_groups(pool: &PgPool) {
    let _alone = GROUPS.lock().await;
    run(pool, &Recipe::read().groups).await;
}

async fn run(db: impl PgExecutor<'_>, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(db).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The error of a statement that must be refused, as `SQLSTATE: message`.
async fn refused(pool: &PgPool, sql: &str) -> String {
    // Rolled back, in case that it is not refused.
    let mut transaction = pool.begin().await.expect("a transaction");
    let done = transaction.execute(AssertSqlSafe(sql)).await;
    let error = done.err().unwrap_or_else(|| panic!("it is allowed: {sql}"));
    let error = error.as_database_error().expect("Postgres raised it");
    format!("{}: {}", error.code().unwrap_or_default(), error.message())
}

/// The functions of schema pgflow that the role of this pool may call.
async fn callable(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "select proname::text from pg_proc
         where pronamespace = 'pgflow'::regnamespace and has_function_privilege(oid, 'execute')
         order by proname collate \"C\"",
    )
    .fetch_all(pool)
    .await
    .expect("functions can be listed")
}

/// The tables of schema pgflow, each with its first column that a statement may set.
async fn tables(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as(
        "select c.relname::text, a.attname::text
         from pg_class c
         cross join lateral (
             select k.attname from pg_attribute k where k.attrelid = c.oid and k.attnum > 0 and k.attidentity = '' order by k.attnum limit 1
         ) a
         where c.relnamespace = 'pgflow'::regnamespace and c.relkind = 'r'
         order by c.relname collate \"C\"",
    )
    .fetch_all(pool)
    .await
    .expect("tables can be listed")
}

/// Fails the test unless every way to change a table, and every touch of a queue, is refused.
async fn assert_writes_nothing(pool: &PgPool) {
    let tables = tables(pool).await;
    assert!(tables.len() >= 11, "{tables:?}");
    for (table, column) in tables {
        for statement in [
            format!("insert into pgflow.{table} default values"),
            format!("update pgflow.{table} set {column} = {column}"),
            format!("delete from pgflow.{table}"),
            format!("truncate pgflow.{table}"),
            format!("select from pgflow.{table} for update"),
        ] {
            let expected = format!("42501: permission denied for table {table}");
            assert_eq!(refused(pool, &statement).await, expected, "{statement}");
        }
    }
    for statement in [
        "create table pgflow.mine (a int)",
        "create function pgflow.mine() returns int language sql as 'select 1'",
    ] {
        let expected = "42501: permission denied for schema pgflow";
        assert_eq!(refused(pool, statement).await, expected, "{statement}");
    }
    for statement in [
        "select from pgmq.q_orders",
        "delete from pgmq.q_orders",
        "select from pgmq.a_orders",
        "select from pgmq.meta",
        "select pgmq.send('orders', '{}')",
        "select pgmq.read('orders', 30, 1)",
        "select pgmq.drop_queue('orders')",
    ] {
        let expected = "42501: permission denied for schema pgmq";
        assert_eq!(refused(pool, statement).await, expected, "{statement}");
    }
}

/// Fails the test unless each call is refused for want of rights on the function.
async fn assert_may_not_call(pool: &PgPool, calls: &[&str]) {
    for call in calls {
        let name = call.split('(').next().unwrap_or_default();
        let expected = format!("42501: permission denied for function {name}");
        let statement = format!("select pgflow.{call}");
        assert_eq!(refused(pool, &statement).await, expected);
    }
}
