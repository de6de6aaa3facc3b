//! The remains of years of use: ended runs with their steps and tasks, and archived messages.

use pgflow::sqlx::{self, AssertSqlSafe, PgConnection, PgPool};

use crate::{
    Result,
    flows::{Data, Measured, Work},
    options::Options,
    scenario::{Shape, with_flow},
    server::Place,
    work::Crew,
};

/// Fills a place with its number of runs, spread over the flows that are measured in it.
pub(crate) async fn fill(place: &Place, options: &Options) -> Result<()> {
    if place.history == 0 {
        return Ok(());
    }
    let mut shapes: Vec<Shape> = Vec::new();
    for scenario in options.scenarios() {
        for &shape in scenario.history() {
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
    }
    let flows: Vec<_> = options
        .modes()
        .into_iter()
        .flat_map(|mode| shapes.iter().map(move |&shape| (shape, mode)))
        .collect();
    let share = place.history.div_ceil(flows.len() as u64);
    for (shape, mode) in flows {
        with_flow!(shape, mode, fill_flow(&place.pool, share))?;
    }
    // As autovacuum would have done by now.
    for table in ["runs", "step_states", "step_tasks"] {
        let vacuum = format!("vacuum (analyze) pgflow.{table}");
        sqlx::raw_sql(AssertSqlSafe(vacuum))
            .execute(&place.pool)
            .await?;
    }
    Ok(())
}

async fn fill_flow<F: Measured>(pool: &PgPool, runs: u64) -> Result<()> {
    let slug = F::DEFINITION.slug;
    // Stores the definition.
    let work = Work::new(Data::of_bytes(0), usize::MAX);
    let crew = Crew::start::<F>(std::slice::from_ref(pool), 1, &work).await?;
    crew.stop().await?;
    let defined: i64 = sqlx::query_scalar("select count(*) from pgflow.steps where flow_slug = $1")
        .bind(slug)
        .fetch_one(pool)
        .await?;
    if usize::try_from(defined) != Ok(F::DEFINITION.steps.len()) {
        return Err(format!("{slug}: {defined} steps are stored").into());
    }

    let source = Source { slug, runs };
    if source.is_there(pool).await? {
        return Ok(());
    }
    let queues = reserve(pool, slug, runs).await?;
    let rows = async {
        let mut session = pool.acquire().await?;
        let quick = without_triggers(&mut session).await?;
        for insert in [RUNS, STATES, TASKS] {
            source.execute(&mut session, insert, "").await?;
        }
        if quick {
            sqlx::raw_sql("reset session_replication_role")
                .execute(&mut *session)
                .await?;
        }
        Result::Ok(())
    };
    let archives = async {
        let mut session = pool.acquire().await?;
        for queue in &queues {
            source.execute(&mut session, MESSAGES, queue).await?;
            source
                .execute(&mut session, "vacuum (analyze) pgmq.a_{queue}", queue)
                .await?;
        }
        Result::Ok(())
    };
    tokio::try_join!(rows, archives)?;
    Ok(())
}

/// Takes the ids of the messages that there would have been; returns the flow's queues.
async fn reserve(pool: &PgPool, slug: &str, runs: u64) -> Result<Vec<String>> {
    let queues: Vec<(String, i64)> = sqlx::query_as(
        "select queue_name, count(*) from pgflow.steps where flow_slug = $1 group by queue_name order by 1",
    )
    .bind(slug)
    .fetch_all(pool)
    .await?;
    for (queue, steps) in &queues {
        let messages = i64::try_from(runs)? * steps;
        sqlx::query(
            "select setval(pg_get_serial_sequence('pgmq.q_' || $1, 'msg_id'),
                nextval(pg_get_serial_sequence('pgmq.q_' || $1, 'msg_id')) + $2)",
        )
        .bind(queue)
        .bind(messages)
        .execute(pool)
        .await?;
    }
    Ok(queues.into_iter().map(|(queue, _)| queue).collect())
}

/// Leaves out the checks of foreign keys, where the role may: whether it may.
async fn without_triggers(session: &mut PgConnection) -> Result<bool> {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    match sqlx::raw_sql("set session_replication_role = replica")
        .execute(session)
        .await
    {
        Ok(_) => Ok(true),
        Err(sqlx::Error::Database(error))
            if error.code().as_deref() == Some(INSUFFICIENT_PRIVILEGE) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

struct Source<'a> {
    slug: &'a str,
    runs: u64,
}

impl Source<'_> {
    /// Returns whether an earlier program wrote this very history into the database.
    async fn is_there(&self, pool: &PgPool) -> Result<bool> {
        let (first, last, next): (bool, bool, bool) = sqlx::query_as(
            "select exists (select from pgflow.runs where run_id = md5($1 || 1)::uuid),
                exists (select from pgflow.runs where run_id = md5($1 || $2)::uuid),
                exists (select from pgflow.runs where run_id = md5($1 || ($2 + 1))::uuid)",
        )
        .bind(self.slug)
        .bind(i64::try_from(self.runs)?)
        .fetch_one(pool)
        .await?;
        match (first, last, next) {
            (true, true, false) => Ok(true),
            (false, _, _) => Ok(false),
            _ => Err(format!("the database holds another history of {}: measure once with `--history 0`, which removes it", self.slug).into()),
        }
    }

    async fn execute(&self, session: &mut PgConnection, sql: &str, queue: &str) -> Result<()> {
        let sql = sql
            .replace("{past}", PAST)
            .replace("{steps}", STEPS)
            .replace("{runs}", &self.runs.to_string())
            .replace("{slug}", self.slug)
            .replace("{queue}", queue);
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(session).await?;
        Ok(())
    }
}

/// Runs in the order of their time; ids have none, so the indexes that hold them grow as they do in
/// use. The last run was started an hour ago.
const PAST: &str = "
    select n, md5('{slug}' || n)::uuid as run_id, now() - interval '1 hour' - ({runs} - n) * interval '20 seconds' as at
    from generate_series(1, {runs}::bigint) n";

/// The flow's steps, each with its place among those of its queue, and that queue's last id of a
/// message.
const STEPS: &str = "
    select s.step_slug, s.step_index, s.step_type, s.queue_name,
        case s.step_type when 'map' then '[\"\"]'::jsonb else '\"\"' end as output,
        row_number() over (partition by s.queue_name order by s.step_index) as place,
        count(*) over (partition by s.queue_name) as width,
        currval_of.last_value as last_message
    from pgflow.steps s
    cross join lateral (
        select q.last_value
        from pg_sequences q
        where q.schemaname || '.' || q.sequencename = pg_get_serial_sequence('pgmq.q_' || s.queue_name, 'msg_id')
    ) currval_of
    where s.flow_slug = '{slug}'";

const RUNS: &str = "
    insert into pgflow.runs (run_id, flow_slug, status, input, output, remaining_steps, started_at, completed_at)
    select p.run_id, '{slug}', 'completed', f.input, f.output, 0, p.at, p.at + interval '1 second'
    from ({past}) p
    cross join (
        select case when bool_or(s.step_type = 'map') then '[\"\"]'::jsonb else '\"\"' end as input,
            jsonb_object_agg(s.step_slug, s.output) filter (
                where not exists (select from pgflow.deps d where d.flow_slug = '{slug}' and d.dep_slug = s.step_slug)
            ) as output
        from ({steps}) s
    ) f";

const STATES: &str = "
    insert into pgflow.step_states
        (flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, created_at, started_at, completed_at, output)
    select '{slug}', p.run_id, s.step_slug, 'completed', 1, 0, p.at,
        p.at + s.step_index * interval '10 ms', p.at + (s.step_index + 1) * interval '10 ms', s.output
    from ({past}) p cross join ({steps}) s
    order by p.n, s.step_index";

const TASKS: &str = "
    insert into pgflow.step_tasks
        (flow_slug, run_id, step_slug, task_index, queue_name, message_id, status, attempts_count, queued_at, started_at, completed_at, input, output)
    select '{slug}', p.run_id, s.step_slug, 0, s.queue_name, s.last_message - {runs} * s.width + (p.n - 1) * s.width + s.place, 'completed', 1,
        p.at + s.step_index * interval '10 ms', p.at + s.step_index * interval '10 ms' + interval '2 ms', p.at + (s.step_index + 1) * interval '10 ms',
        case s.step_type when 'map' then '\"\"'::jsonb end, '\"\"'
    from ({past}) p cross join ({steps}) s
    order by p.n, s.step_index";

const MESSAGES: &str = "
    insert into pgmq.a_{queue} (msg_id, read_ct, enqueued_at, archived_at, vt, message)
    select s.last_message - {runs} * s.width + (p.n - 1) * s.width + s.place, 1, p.at, p.at + interval '1 second', p.at + interval '62 seconds',
        jsonb_build_object('flow_slug', '{slug}', 'run_id', p.run_id, 'step_slug', s.step_slug, 'task_index', 0)
    from ({past}) p cross join ({steps}) s
    where s.queue_name = '{queue}'
    order by p.n, s.step_index";
