use std::path::PathBuf;

use clap::Args;
use pgflow_runtime::dev::{DevDatabase, DevError};
use serde_json::json;

use crate::{arguments::Output, exit::Exit, failure::Failure, output, stop::StopSignal};

#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Keep the data in this directory, also for the next time; without it, the data goes when the
    /// command ends.
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
            output::print_for_programs(&ready.to_string())?;
        } else {
            output::print(database.url())?;
            output::say(self.at_start());
            output::say(format!(
                "use it with: export DATABASE_URL='{}'; stop it with ctrl-c",
                database.url()
            ));
        }
        tokio::select! {
            () = stop.received() => {}
            ended = database.ended() => return Err(ended.into()),
        }
        if !output.json {
            output::say(self.at_end());
        }
        database.stop().await?;
        Ok(Exit::Done)
    }

    fn at_start(&self) -> String {
        let data = match &self.data_dir {
            Some(directory) => format!("its data stays in {} when it ends", directory.display()),
            None => "its data goes when it ends, unless --data-dir keeps it".to_owned(),
        };
        format!("migrated and marked local; {data}")
    }

    fn at_end(&self) -> String {
        match &self.data_dir {
            Some(directory) => format!("stopping; its data stays in {}", directory.display()),
            None => "stopping; its data goes with it".to_owned(),
        }
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
