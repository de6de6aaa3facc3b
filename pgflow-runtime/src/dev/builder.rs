use std::env;
use std::path::PathBuf;

use super::DevDatabase;
use super::error::DevError;
use super::settings::Settings;

/// Choices for a [`DevDatabase`]; all but [`ignore_environment`](Self::ignore_environment) concern
/// the private server and have no effect on the server that `DATABASE_URL` names.
#[derive(Debug, Clone, Default)]
pub struct DevBuilder {
    pub(super) data_dir: Option<PathBuf>,
    pub(super) temp_dir: Option<PathBuf>,
    pub(super) settings: Settings,
    pub(super) database: Option<String>,
    ignore_environment: bool,
}

impl DevBuilder {
    /// Keeps the data in the directory `path`, which is created when absent and used again when it
    /// exists.
    ///
    /// One owner at a time may use it: a second one gets [`DevError::DataInUse`] with the URL of
    /// the running server. The server keeps the safe defaults of Postgres, so the data survives a
    /// crash of the machine.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// Puts temporary data of the server below the directory `path`, and not below `TMPDIR`.
    ///
    /// A file system in memory makes for a faster start, and much faster tests where the disk is
    /// busy.
    pub fn temp_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.temp_dir = Some(path.into());
        self
    }

    /// Starts a private server even when `DATABASE_URL` is set. For tests.
    pub fn ignore_environment(mut self) -> Self {
        self.ignore_environment = true;
        self
    }

    /// Passes a setting such as `max_connections` to the server.
    ///
    /// To reach the server by TCP as well, set `listen_addresses` and `port`; as TCP connections
    /// need a password, give a role one first.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.add(&name.into(), value.into());
        self
    }

    /// Connects to the database `name`, created when absent, and not to `postgres`.
    pub fn database(mut self, name: impl Into<String>) -> Self {
        self.database = Some(name.into());
        self
    }

    /// Finds or starts the server.
    pub async fn start(self) -> Result<DevDatabase, DevError> {
        let url = env::var("DATABASE_URL").unwrap_or_default();
        if self.ignore_environment || url.is_empty() {
            DevDatabase::private(self).await
        } else {
            Ok(DevDatabase::at(url))
        }
    }
}
