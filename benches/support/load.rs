//! The cost of a piece of work for the server and this process: processor time, transactions,
//! statements, WAL, dead tuples.
//!
//! ```ignore
//! let mut meter = Meter::new(&pool).await?;
//! for note in meter.notes() { eprintln!("{note}"); }   // what can't be told here, and why
//! meter.checkpoint().await?;
//! let started = meter.start(&[&pool]).await?;
//! work(&pool).await?;
//! let stopped = meter.stop(started).await?;            // the clocks stop here
//! let load = meter.load(stopped, &[&pool]).await?;     // what the sessions counted
//! ```
//!
//! Sessions tell the server what they counted once a second, and late when they are idle. Those of
//! the given pools are made to tell at once; every other session that worked must have ended before
//! [`Meter::load`], which waits for that.
//!
//! Needs nothing but std, sqlx and serde, so that other programs can include it.
#![allow(
    dead_code,
    unused_imports,
    reason = "each program that includes this uses a part of it"
)]

#[path = "load/counters.rs"]
mod counters;
#[path = "load/processes.rs"]
mod processes;

use std::time::Instant;

use pgflow::sqlx::{Connection, PgConnection, PgPool};
use serde::Serialize;

use counters::{Counters, Reader};
use processes::Postmaster;
pub(crate) use processes::{cpu_of, own_cpu};

pub(crate) type Result<T> = std::result::Result<T, pgflow::sqlx::Error>;

/// Samples one database through a session of its own.
#[derive(Debug)]
pub(crate) struct Meter {
    session: PgConnection,
    reader: Reader,
    postmaster: Option<Postmaster>,
    notes: Vec<String>,
}

/// The state of everything when the work began.
#[derive(Debug)]
pub(crate) struct Started {
    counters: Counters,
    postgres_cpu: Option<f64>,
    client_cpu: Option<f64>,
    at: Instant,
}

/// The clocks when the work ended; what sessions counted is still missing.
#[derive(Debug)]
pub(crate) struct Stopped {
    before: Counters,
    load: Load,
}

/// The cost of the work. Unknown figures are `None`.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Load {
    /// From the first sample to the second.
    pub(crate) seconds: f64,
    /// Seconds of processor time of all processes of the server, whatever database they work for.
    pub(crate) postgres_cpu: Option<f64>,
    /// Seconds of processor time of this process.
    pub(crate) client_cpu: Option<f64>,
    /// Transactions in this database, committed and rolled back; also those of autovacuum.
    pub(crate) transactions: i64,
    /// Statements that clients sent to this database.
    pub(crate) statements: Option<i64>,
    /// Bytes of WAL that the server wrote.
    pub(crate) wal_bytes: i64,
    /// Whole pages among them, written at the first change after a checkpoint.
    pub(crate) wal_full_pages: i64,
    /// Rows of the tables in schemas `pgflow` and `pgmq`, with what is stored beside them.
    pub(crate) inserted: i64,
    pub(crate) updated: i64,
    /// Updates that changed no index.
    pub(crate) hot_updated: i64,
    pub(crate) deleted: i64,
    /// The increase of dead tuples in these tables; negative after a vacuum.
    pub(crate) dead_tuples: i64,
}

impl Load {
    /// Dead tuples that the work made, whoever removed them since.
    pub(crate) fn dead_tuples_made(&self) -> i64 {
        self.updated + self.deleted
    }

    /// The share of updates that changed no index; `None` without updates.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(crate) fn hot_share(&self) -> Option<f64> {
        (self.updated > 0).then(|| self.hot_updated as f64 / self.updated as f64)
    }
}

impl Meter {
    /// Looks at what can be told about this server.
    pub(crate) async fn new(pool: &PgPool) -> Result<Self> {
        let mut session = PgConnection::connect_with(&pool.connect_options()).await?;
        let mut notes = Vec::new();
        let reader = Reader::new(&mut session, &mut notes).await?;
        let postmaster = match reader.server(&mut session).await? {
            Ok(server) => Postmaster::find(server.backend, server.age),
            Err(why) => Err(why),
        };
        let postmaster = postmaster
            .map_err(|why| notes.push(format!("Postgres' processor time is not known: {why}")))
            .ok();
        if own_cpu().is_none() {
            notes.push("this process' processor time is not known: there is no /proc".to_owned());
        }
        Ok(Self {
            session,
            reader,
            postmaster,
            notes,
        })
    }

    /// Returns the unknown figures with the reasons: a line each.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Writes a checkpoint, so that whole pages in the WAL are comparable; without the right to do
    /// so, says so once.
    pub(crate) async fn checkpoint(&mut self) -> Result<()> {
        let why = "there was no checkpoint before the work, so WAL figures vary: this role may not write one";
        if !self.reader.checkpoint(&mut self.session).await? && !self.notes.iter().any(|n| n == why)
        {
            self.notes.push(why.to_owned());
        }
        Ok(())
    }

    /// Begins to measure; `pools` are those whose sessions did something shortly before.
    pub(crate) async fn start(&mut self, pools: &[&PgPool]) -> Result<Started> {
        self.reader.flush(pools).await?;
        // Makes this session tell what it did before, such as a checkpoint.
        self.reader.wal(&mut self.session).await?;
        let counters = self.reader.read(&mut self.session).await?;
        Ok(Started {
            counters,
            postgres_cpu: self.postgres_cpu(),
            client_cpu: own_cpu(),
            at: Instant::now(),
        })
    }

    /// Stops the clocks.
    pub(crate) async fn stop(&mut self, started: Started) -> Result<Stopped> {
        let seconds = started.at.elapsed().as_secs_f64();
        let since = |before: Option<f64>, now: Option<f64>| Some(now? - before?);
        let load = Load {
            seconds,
            client_cpu: since(started.client_cpu, own_cpu()),
            postgres_cpu: since(started.postgres_cpu, self.postgres_cpu()),
            wal_bytes: self.reader.wal(&mut self.session).await? - started.counters.wal,
            ..Load::default()
        };
        Ok(Stopped {
            before: started.counters,
            load,
        })
    }

    /// Reads what was counted, once the sessions of `pools` have told it and all others that worked
    /// have ended.
    pub(crate) async fn load(&mut self, stopped: Stopped, pools: &[&PgPool]) -> Result<Load> {
        let known = self.reader.flush(pools).await?;
        let open = self.reader.settle(&mut self.session, &known).await?;
        if open > 0 {
            let note = format!(
                "{open} sessions that worked are still open: the last second of their counters may be missing"
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.read(stopped).await
    }

    /// The same while sessions continue: what those outside of `pools` counted lately may be
    /// missing.
    pub(crate) async fn load_now(&mut self, stopped: Stopped, pools: &[&PgPool]) -> Result<Load> {
        self.reader.flush(pools).await?;
        self.read(stopped).await
    }

    async fn read(&mut self, stopped: Stopped) -> Result<Load> {
        let after = self.reader.read(&mut self.session).await?;
        Ok(after.since(&stopped.before, &stopped.load))
    }

    fn postgres_cpu(&self) -> Option<f64> {
        self.postmaster.as_ref().and_then(Postmaster::cpu)
    }
}
