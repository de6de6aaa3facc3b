//! Connections.

use std::time::Duration;

use anyhow::Context as _;
use pgflow_runtime::migrate;
use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{arguments::Connection, failure::Failure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool of a database that can be reached.
pub(crate) async fn pool(connection: &Connection) -> Result<PgPool, Failure> {
    let options = options(connection)?;
    // A pool would try again and again, and only say that it ran out of time.
    connect(&options).await?.close().await?;
    Ok(pool_of(options))
}

fn pool_of(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy_with(options)
}

/// A pool of a database that is ready for this release.
pub(crate) async fn ready_pool(connection: &Connection) -> Result<PgPool, Failure> {
    ready(connection).await?.close().await?;
    Ok(pool_of(options(connection)?))
}

/// A connection to a database that is ready for this release.
pub(crate) async fn ready(connection: &Connection) -> Result<PgConnection, Failure> {
    let options = options(connection)?;
    let mut connected = connect(&options).await?;
    migrate::check_installed(&mut connected).await?;
    Ok(connected)
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Failure> {
    let expected = || {
        format!(
            "can't connect to {}; expected a running Postgres that takes the role and its password; \
             check --database-url or DATABASE_URL, or start a local one with `pgflow dev`",
            place(options)
        )
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options))
        .await
        .with_context(expected)?;
    Ok(connected.with_context(expected)?)
}

fn options(connection: &Connection) -> Result<PgConnectOptions, Failure> {
    let url = connection.database_url.as_deref().unwrap_or_default();
    if url.is_empty() {
        return Err(Failure::usage(
            "no database was named; expected --database-url or the environment variable DATABASE_URL; \
             for a local one, run `pgflow dev`",
        ));
    }
    check_form(url)?;
    let options: PgConnectOptions = url.parse().map_err(|error| {
        Failure::usage(format!(
            "the database's URL can't be read ({error}); expected postgres://user:password@host:port/database, \
             with special characters of the password percent-encoded; check --database-url or DATABASE_URL"
        ))
    })?;
    Ok(options.application_name("pgflow"))
}

/// Refuses what the driver would take for another host or dial in vain. Never quotes the URL,
/// which holds the password.
fn check_form(url: &str) -> Result<(), Failure> {
    const CHECK: &str = "check --database-url or DATABASE_URL";
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(());
    };
    if !["postgres", "postgresql"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err(Failure::usage(format!(
            "the database's URL begins with {scheme}://; expected postgres:// or postgresql://; {CHECK}"
        )));
    }
    let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = authority.split('/').next().unwrap_or_default();
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    let host_parameters = query.split('&').filter_map(|part| part.split_once('='));
    let several = hosts.contains(',')
        || host_parameters
            .filter(|(name, _)| ["host", "hostaddr", "port"].contains(name))
            .any(|(_, value)| value.contains(',') || value.to_ascii_lowercase().contains("%2c"));
    if several {
        return Err(Failure::usage(format!(
            "the database's URL names several hosts; expected one, that of the primary server, or an \
             address that follows it (a pooler, a virtual address, DNS); {CHECK}"
        )));
    }
    Ok(())
}

/// Describes the target of a connection, without the password.
fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options.get_database().unwrap_or(options.get_username());
    format!(
        "database {database} at {host}:{} as {}",
        options.get_port(),
        options.get_username()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(url: &str) -> String {
        let error = check_form(url).expect_err(url);
        format!("{error:?}")
    }

    #[test]
    fn another_database_is_refused_before_it_is_dialled_and_no_password_is_shown() {
        for url in [
            "mysql://root:hunter2@localhost/shop",
            "http://hunter2@localhost",
            "postgres+ssl://a:hunter2@b/c",
        ] {
            let problem = problem(url);
            assert!(
                problem.contains("expected postgres:// or postgresql://"),
                "{problem}"
            );
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn several_hosts_are_refused_in_each_way_to_write_them() {
        for url in [
            "postgres://a:hunter2@one,two/db",
            "postgresql://one:5432,two:5433/db",
            "postgres:///db?host=one,two",
            "postgres:///db?port=5432%2C5433&host=one",
        ] {
            let problem = problem(url);
            assert!(problem.contains("names several hosts"), "{problem}");
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn urls_of_one_host_pass() {
        for url in [
            "postgres://a:b@localhost:5432/db",
            "POSTGRES://localhost/db",
            "postgresql:///db?host=/run/postgresql",
            "postgres://a:p,w@localhost/a,b?application_name=x,y",
            "postgres://%2Frun%2Fpostgresql/db",
        ] {
            assert!(check_form(url).is_ok(), "{url}");
        }
    }
}
