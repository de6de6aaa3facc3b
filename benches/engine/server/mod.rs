//! The server that is measured: a private one, or that of a URL.

mod clean;
mod place;

use std::str::FromStr;

use pgflow::{
    dev::DevDatabase,
    sqlx::{self, AssertSqlSafe, ConnectOptions, Connection, postgres::PgConnectOptions},
};

pub(crate) use clean::clean;
pub(crate) use place::{Place, open};

use crate::{
    Result,
    options::{Options, Session, Switch},
};

/// The settings that make a private server as durable as a real one, and keep checkpoints out of
/// measurements.
const SETTINGS: [(&str, &str); 7] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "1GB"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "1h"),
    ("max_connections", "300"),
];

#[derive(Debug)]
pub(crate) struct Server {
    /// Lives as long as this.
    private: Option<DevDatabase>,
    connect: PgConnectOptions,
}

impl Server {
    pub(crate) async fn start(options: &Options) -> Result<Self> {
        let Some(url) = options.url.as_deref().filter(|url| !url.is_empty()) else {
            return Self::private(options).await;
        };
        if options.histories().len() > 1 {
            return Err(
                "several histories need a database each, which only the private server makes: leave the URL out, or give one history"
                    .into(),
            );
        }
        if !options.settings.is_empty() {
            return Err("`--setting` is for the private server; leave it or the URL out".into());
        }
        let connect = connect_options(url, options.session)?;
        // A pool would try again and again, and not say why.
        connect.connect().await?.close().await?;
        Ok(Self {
            private: None,
            connect,
        })
    }

    async fn private(options: &Options) -> Result<Self> {
        let mut builder = DevDatabase::builder().ignore_environment();
        for (name, value) in SETTINGS {
            builder = builder.setting(name, value);
        }
        if options.statements == Switch::On {
            builder = builder
                .setting("shared_preload_libraries", "pg_stat_statements")
                .setting("pg_stat_statements.track", "top");
        }
        for (name, value) in &options.settings {
            builder = builder.setting(name, value);
        }
        let database = builder.start().await.map_err(|error| {
            format!("{error}\nwhere pg_stat_statements is not installed, say `--statements off`")
        })?;
        let connect = connect_options(database.url(), options.session)?;
        Ok(Self {
            private: Some(database),
            connect,
        })
    }

    /// The database with so many ended runs: on the private server a new one, else the one of the
    /// URL.
    pub(crate) async fn place(&self, options: &Options, history: u64) -> Result<Place> {
        let Some(private) = &self.private else {
            let url = options.url.clone().unwrap_or_default();
            return Place::new(self.connect.clone(), url, None, history).await;
        };
        let name = format!("history_{history}");
        let mut session = self.connect.connect().await?;
        let create = format!("create database {name}");
        sqlx::raw_sql(AssertSqlSafe(create))
            .execute(&mut session)
            .await?;
        session.close().await?;
        let connect = self.connect.clone().database(&name);
        if options.statements == Switch::On {
            let mut session = connect.connect().await?;
            sqlx::raw_sql("create extension pg_stat_statements")
                .execute(&mut session)
                .await?;
            session.close().await?;
        }
        Place::new(connect, private.url().to_owned(), Some(name), history).await
    }

    pub(crate) fn is_private(&self) -> bool {
        self.private.is_some()
    }

    pub(crate) async fn stop(self) -> Result<()> {
        if let Some(private) = self.private {
            private.stop().await?;
        }
        Ok(())
    }
}

/// Returns the options with which all sessions of the benchmark connect.
pub(crate) fn connect_options(url: &str, session: Session) -> Result<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url)?;
    Ok(match session.synchronous_commit {
        Some(switch) => options.options([("synchronous_commit", switch.name())]),
        None => options,
    })
}
