//! A database for one test.

use sqlx::postgres::{PgPool, PgPoolOptions};

use super::cluster::{Cluster, close, execute};

/// A database that no other test sees, with a pool of the superuser.
#[derive(Debug)]
pub(crate) struct TestDb {
    pub(crate) pool: PgPool,
    pub(crate) url: String,
    pub(crate) name: String,
    cluster: &'static Cluster,
}

/// An ordinary user of a [`TestDb`]: its owner, and nothing more.
#[derive(Debug)]
pub(crate) struct TestRole {
    pub(crate) pool: PgPool,
    pub(crate) url: String,
    pub(crate) name: String,
}

impl TestDb {
    /// A migrated database.
    pub(crate) async fn new() -> Self {
        Self::create(true).await
    }

    /// A database with nothing in it.
    pub(crate) async fn blank() -> Self {
        Self::create(false).await
    }

    async fn create(is_migrated: bool) -> Self {
        let cluster = Cluster::get().await;
        let name = cluster.create(is_migrated).await;
        let url = cluster.url(&name);
        let pool = pool(&url).await;
        Self {
            pool,
            url,
            name,
            cluster,
        }
    }

    /// Makes a new role, which is no superuser, the owner of this database, and connects as that
    /// role.
    ///
    /// Roles belong to the whole server, so the role's name tells the database as well.
    pub(crate) async fn as_role(&self, role: &str) -> TestRole {
        let name = format!("{}_{role}", self.name);
        let mut admin = self.cluster.connect(&self.name).await;
        execute(&mut admin, &format!("create role {name} login")).await;
        let owned = format!("alter database {} owner to {name}", self.name);
        execute(&mut admin, &owned).await;
        close(admin).await;
        let url = self.url.replacen("//postgres@", &format!("//{name}@"), 1);
        let pool = pool(&url).await;
        TestRole { pool, url, name }
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        self.cluster.give_back(&self.name);
    }
}

async fn pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(20);
    options
        .connect(url)
        .await
        .expect("the database accepts connections")
}

mod tests {
    use std::time::Duration;

    use sqlx::{AssertSqlSafe, PgPool};
    use tokio::task::JoinSet;

    use super::super::eventually;
    use super::super::invariants::assert_invariants;
    use super::TestDb;

    async fn one<T>(pool: &PgPool, sql: &str) -> T
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(pool)
            .await
            .unwrap()
    }

    const HAS_PGFLOW: &str = "select to_regnamespace('pgflow') is not null";

    #[tokio::test]
    async fn every_test_has_its_own() {
        let (first, second) = (TestDb::new().await, TestDb::new().await);
        assert_ne!(first.name, second.name);
        sqlx::raw_sql("select pgflow.create_flow('mine')")
            .execute(&first.pool)
            .await
            .unwrap();
        let flows = "select count(*) from pgflow.flows";
        assert_eq!(one::<i64>(&first.pool, flows).await, 1);
        assert_eq!(one::<i64>(&second.pool, flows).await, 0);
        assert_invariants(&first.pool).await;
    }

    #[tokio::test]
    async fn a_blank_one_has_nothing() {
        let database = TestDb::blank().await;
        assert!(!one::<bool>(&database.pool, HAS_PGFLOW).await);
        assert!(one::<bool>(&TestDb::new().await.pool, HAS_PGFLOW).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_at_once() {
        let mut creations = JoinSet::new();
        for _ in 0..8 {
            creations.spawn(TestDb::new());
        }
        for database in creations.join_all().await {
            assert!(one::<bool>(&database.pool, HAS_PGFLOW).await);
        }
    }

    #[tokio::test]
    async fn what_a_test_is_done_with_goes_away() {
        let done = TestDb::new().await;
        let name = done.name.clone();
        drop(done);
        let database = TestDb::blank().await;
        let gone = format!("select not exists (select from pg_database where datname = '{name}')");
        // Another test's creation may be about to drop it.
        eventually(
            Duration::from_secs(20),
            "the database is dropped",
            async || one::<bool>(&database.pool, &gone).await.then_some(()),
        )
        .await;
    }

    #[tokio::test]
    async fn an_owner_is_no_superuser() {
        let database = TestDb::blank().await;
        let owner = database.as_role("app").await;
        assert_eq!(
            one::<String>(&owner.pool, "select session_user::text").await,
            owner.name
        );
        assert!(owner.url.contains(&owner.name));
        let superuser = "select rolsuper from pg_roles where rolname = current_user";
        assert!(!one::<bool>(&owner.pool, superuser).await);
        sqlx::raw_sql("create schema mine")
            .execute(&owner.pool)
            .await
            .unwrap();
    }
}
