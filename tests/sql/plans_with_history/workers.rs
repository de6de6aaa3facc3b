//! The queries of operators and whole processes: they read none of tens of thousands of stopped
//! workers.

use sqlx::PgTransaction;
use uuid::Uuid;

use super::Session;
use crate::support::flows::Claimed;
use crate::support::operations::{fence, heartbeats, unfence};

impl Session<'_> {
    /// As [`reading`](Session::reading), and of workers no more than there are live ones, and some
    /// that are dead rows.
    async fn reading_workers<T>(
        &mut self,
        what: &str,
        work: impl AsyncFnOnce(&mut PgTransaction<'_>) -> T,
    ) -> T {
        let (done, reads) = self.reading(what, 100, work).await;
        let rows = reads.of("workers");
        if rows > 500 {
            let knows = self.knows;
            self.faults.push(format!(
                "{knows}: {what} reads {rows} rows of workers:\n{reads}"
            ));
        }
        done
    }

    /// Executes the queries while these tasks run.
    pub(super) async fn operations(&mut self, tasks: &[Claimed]) {
        let worker = self.worker;
        let beats = self
            .reading_workers("beating for twenty", async |tx| {
                let unknown = std::iter::repeat_with(Uuid::new_v4).take(19);
                let ids: Vec<Uuid> = unknown.chain([worker]).collect();
                heartbeats(&mut **tx, &ids).await.expect("answered")
            })
            .await;
        assert_eq!(beats, [(worker, false, None)]);
        // The test may take long.
        super::keep_alive(self.db).await;

        let (lost, reads) = self
            .reading("looking for lost attempts", 40, async |tx| {
                sqlx::query_scalar::<_, i32>("select pgflow.lost_attempts($1, $2, $3, $4)")
                    .bind(tasks.iter().map(|t| t.run_id).collect::<Vec<_>>())
                    .bind(
                        tasks
                            .iter()
                            .map(|t| t.step_slug.as_str())
                            .collect::<Vec<_>>(),
                    )
                    .bind(tasks.iter().map(|t| t.task_index).collect::<Vec<_>>())
                    .bind(
                        tasks
                            .iter()
                            .map(|t| t.attempt + t.task_index % 2)
                            .collect::<Vec<_>>(),
                    )
                    .fetch_all(&mut **tx)
                    .await
                    .expect("answered")
            })
            .await;
        assert_eq!(lost.len(), tasks.len() / 2);
        self.expect_index("looking for lost attempts", &reads, "step_tasks_pkey");

        self.statuses(tasks.len()).await;
        self.ensure().await;
        self.fencing().await;
    }

    /// Executes the query of `pgflow workers`.
    async fn statuses(&mut self, tasks: usize) {
        for filter in [
            "function_name = 'test-worker' and stopped_at is null",
            "stopped_at is null",
        ] {
            let query = format!(
                "select coalesce(sum(started_tasks), 0)::bigint from pgflow.worker_status where {filter}"
            );
            let started = self
                .reading_workers(filter, async |tx| {
                    sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(query))
                        .persistent(false)
                        .fetch_one(&mut **tx)
                        .await
                        .expect("the view can be read")
                })
                .await;
            assert_eq!(started, i64::try_from(tasks).expect("few"));
        }
        let live = self
            .reading_workers("counting who lives", async |tx| {
                let query = "select count(*) from pgflow.live_workers where queue_name = 'f'";
                sqlx::query_scalar::<_, i64>(query)
                    .persistent(false)
                    .fetch_one(&mut **tx)
                    .await
                    .expect("the view can be read")
            })
            .await;
        assert!(live > 0);
    }

    /// A function whose workers have all stopped is to be invoked.
    async fn ensure(&mut self) {
        sqlx::raw_sql(
            "select pgflow.track_worker_function('idle', 'http'); update pgflow.worker_functions set last_invoked_at = null",
        )
        .execute(&self.db.pool)
        .await
        .expect("it is known");
        let missing = self
            .reading_workers("ensuring workers", async |tx| {
                sqlx::query_scalar::<_, String>("select function_name from pgflow.ensure_workers()")
                    .fetch_all(&mut **tx)
                    .await
                    .expect("answered")
            })
            .await;
        assert_eq!(missing, ["idle"]);
    }

    async fn fencing(&mut self) {
        self.reading_workers("fencing", async |tx| {
            fence(&mut **tx, &["idle"], None).await.expect("fenced");
            unfence(&mut **tx, &["idle"]).await.expect("unfenced");
        })
        .await;
    }
}
