use std::path::PathBuf;

use clap::Args;
use pgflow_runtime::dev::{DevDatabase, DevError};
use serde_json::json;

use crate::{arguments::Output, exit::Exit, failure::Failure, output, stop::StopSignal};

#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Keep the data in this directory; without it, the data goes with the server.
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
}

impl Dev {
    pub(crate) async fn run(self, output: &Output) -> Result<Exit, Failure> {
        let mut stop = StopSignal::listen()?;
        let database = tokio::select! {
            started = self.start() => started?,
            () = stop.received() => return Ok(Exit::Done),
        };
        if output.json {
            // One line: whoever waits for it can't wait for the end of the output.
            let ready = json!({ "url": database.url(), "data_dir": self.data_dir });
            output::print(&ready.to_string())?;
        } else {
            output::print(database.url())?;
            output::say(&format!(
                "migrated and marked local; use it with: export DATABASE_URL='{}'; stop it with ctrl-c",
                database.url()
            ));
        }
        stop.received().await;
        database.stop().await?;
        Ok(Exit::Done)
    }

    async fn start(&self) -> Result<DevDatabase, DevError> {
        // A server of its own is what was asked for, whatever DATABASE_URL names.
        let mut builder = DevDatabase::builder().ignore_environment();
        if let Some(directory) = &self.data_dir {
            builder = builder.data_dir(directory);
        }
        let database = builder.start().await?;
        database.migrated_pool().await?.close().await;
        Ok(database)
    }
}
