//! The counters of the server, read by statements whose own part is subtracted.

use pgflow::sqlx::{self, AssertSqlSafe, PgConnection, PgPool, Row, postgres::PgRow};

use super::{Load, Result};

/// The first version that tells what it counted on demand.
const FLUSHES: i32 = 150_000;
/// Looks at the sessions that have yet to end, each after [`PAUSE`].
const LOOKS: u32 = 100;
const PAUSE: f64 = 0.03;

#[derive(Debug)]
pub(super) struct Reader {
    version: i32,
    /// Reads the statements, and what would make them incomparable.
    statements: Option<String>,
    /// Statements of this reader, each a transaction, up to now.
    own: i64,
}

/// The location of a server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) backend: u32,
    /// Seconds since its start.
    pub(super) age: f64,
}

#[derive(Debug)]
pub(super) struct Counters {
    transactions: i64,
    statements: Option<(i64, String)>,
    pub(super) wal: i64,
    wal_full_pages: i64,
    inserted: i64,
    updated: i64,
    hot_updated: i64,
    deleted: i64,
    dead: i64,
    own: i64,
}

/// The simple protocol: a statement is one transaction, without another one to prepare it.
async fn one(session: &mut PgConnection, sql: String) -> Result<PgRow> {
    sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(session).await
}

impl Reader {
    pub(super) async fn new(session: &mut PgConnection, notes: &mut Vec<String>) -> Result<Self> {
        let row = one(
            session,
            "select current_setting('server_version_num')::int as version,
                (select format('%I', n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                 where e.extname = 'pg_stat_statements') as statements"
                .to_owned(),
        )
        .await?;
        let mut reader = Self {
            version: row.try_get("version")?,
            statements: None,
            own: 0,
        };
        match row.try_get::<Option<String>, _>("statements")? {
            None => notes.push(
                "statements are not counted: the extension pg_stat_statements is not in this database"
                    .to_owned(),
            ),
            Some(schema) => {
                let read = format!(
                    "(select coalesce(sum(s.calls), 0)::int8 from {schema}.pg_stat_statements(false) s
                      where s.toplevel and s.dbid = (select d.oid from pg_database d where d.datname = current_database())) as statements,
                     (select format('%s since %s', i.dealloc, i.stats_reset) from {schema}.pg_stat_statements_info() i) as statements_kept"
                );
                match one(session, format!("select {read}")).await {
                    Ok(_) => reader.statements = Some(read),
                    Err(error) => notes.push(format!("statements are not counted: {error}")),
                }
            }
        }
        Ok(reader)
    }

    pub(super) async fn server(
        &self,
        session: &mut PgConnection,
    ) -> Result<std::result::Result<Server, String>> {
        let row = one(
            session,
            "select pg_backend_pid() as backend,
                extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as age,
                coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1', true) as near,
                host(inet_server_addr()) as address"
                .to_owned(),
        )
        .await?;
        if !row.try_get::<bool, _>("near")? {
            let address: String = row.try_get("address")?;
            return Ok(Err(format!(
                "it is reached at {address}, and only processes of this machine can be seen"
            )));
        }
        let backend: i32 = row.try_get("backend")?;
        Ok(Ok(Server {
            backend: backend.unsigned_abs(),
            age: row.try_get("age")?,
        }))
    }

    /// Returns whether the role may.
    pub(super) async fn checkpoint(&mut self, session: &mut PgConnection) -> Result<bool> {
        const INSUFFICIENT_PRIVILEGE: &str = "42501";
        self.own += 1;
        match sqlx::raw_sql("checkpoint").execute(session).await {
            Ok(_) => Ok(true),
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(INSUFFICIENT_PRIVILEGE) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the sessions of the pools tell what they counted; returns their process ids.
    pub(super) async fn flush(&mut self, pools: &[&PgPool]) -> Result<Vec<i32>> {
        let tell = self.telling();
        let mut known = Vec::new();
        for pool in pools {
            // All at once, so that each is a different one.
            let mut sessions = Vec::new();
            while sessions.len() < pool.size() as usize {
                sessions.push(pool.acquire().await?);
            }
            for session in &mut sessions {
                self.own += 1;
                let row = one(session, format!("select pg_backend_pid() as pid{tell}")).await?;
                known.push(row.try_get("pid")?);
            }
        }
        Ok(known)
    }

    /// Waits until no session but the known ones is open that did anything lately; returns how many
    /// are, in the end.
    pub(super) async fn settle(
        &mut self,
        session: &mut PgConnection,
        known: &[i32],
    ) -> Result<i64> {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let sql = format!(
            "select count(a.pid) as open{} from pg_sleep({PAUSE}) left join pg_stat_activity a
                on a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
                and a.pid <> all ('{{{}}}'::int[]) and a.state_change > clock_timestamp() - interval '10 seconds'",
            self.telling(),
            known.join(",")
        );
        let mut open = 0;
        for _ in 0..LOOKS {
            self.own += 1;
            open = one(session, sql.clone()).await?.try_get("open")?;
            if open == 0 {
                break;
            }
        }
        if self.version < FLUSHES {
            // A process collects what sessions tell, and writes it twice a second.
            self.own += 1;
            one(session, "select pg_sleep(1.2)::text".to_owned()).await?;
        }
        Ok(open)
    }

    pub(super) async fn wal(&mut self, session: &mut PgConnection) -> Result<i64> {
        self.own += 1;
        let sql = format!("select {WAL} as wal{}", self.telling());
        one(session, sql).await?.try_get("wal")
    }

    pub(super) async fn read(&mut self, session: &mut PgConnection) -> Result<Counters> {
        let statements = self.statements.as_deref();
        let statements = statements.unwrap_or("null::int8 as statements, null as statements_kept");
        let sql = format!(
            "select d.xact_commit + d.xact_rollback as transactions, {statements}, {WAL} as wal,
                (select w.wal_fpi from pg_stat_wal w) as wal_full_pages, t.*{}
             from pg_stat_database d cross join ({TUPLES}) t
             where d.datname = current_database()",
            self.telling()
        );
        let row = one(session, sql).await?;
        let own = self.own;
        self.own += 1;
        Ok(Counters {
            transactions: row.try_get("transactions")?,
            statements: match row.try_get::<Option<i64>, _>("statements")? {
                Some(statements) => Some((statements, row.try_get("statements_kept")?)),
                None => None,
            },
            wal: row.try_get("wal")?,
            wal_full_pages: row.try_get("wal_full_pages")?,
            inserted: row.try_get("inserted")?,
            updated: row.try_get("updated")?,
            hot_updated: row.try_get("hot_updated")?,
            deleted: row.try_get("deleted")?,
            dead: row.try_get("dead")?,
            own,
        })
    }

    /// Columns that make the session tell what it counted, right after the statement. A session
    /// that has read no table has nothing to tell in its own eyes, and keeps even its transactions
    /// to itself.
    fn telling(&self) -> &'static str {
        if self.version >= FLUSHES {
            ", pg_stat_force_next_flush()::text, (select count(*) from pg_am)"
        } else {
            ""
        }
    }
}

const WAL: &str = "(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8";

const TUPLES: &str = "
    select coalesce(sum(s.n_tup_ins), 0)::int8 as inserted, coalesce(sum(s.n_tup_upd), 0)::int8 as updated,
        coalesce(sum(s.n_tup_hot_upd), 0)::int8 as hot_updated, coalesce(sum(s.n_tup_del), 0)::int8 as deleted,
        coalesce(sum(s.n_dead_tup), 0)::int8 as dead
    from pg_class c
    join pg_stat_all_tables s on s.relid in (c.oid, c.reltoastrelid)
    where c.relkind = 'r' and c.relnamespace in (select n.oid from pg_namespace n where n.nspname in ('pgflow', 'pgmq'))";

impl Counters {
    pub(super) fn since(&self, before: &Self, clocks: &Load) -> Load {
        let own = self.own - before.own;
        let statements = match (&self.statements, &before.statements) {
            // The same entries: none was evicted or reset meanwhile.
            (Some((now, kept)), Some((then, kept_then))) if kept == kept_then => {
                Some(now - then - own)
            }
            _ => None,
        };
        Load {
            transactions: self.transactions - before.transactions - own,
            statements,
            wal_full_pages: self.wal_full_pages - before.wal_full_pages,
            inserted: self.inserted - before.inserted,
            updated: self.updated - before.updated,
            hot_updated: self.hot_updated - before.hot_updated,
            deleted: self.deleted - before.deleted,
            dead_tuples: self.dead - before.dead,
            ..clocks.clone()
        }
    }
}
