use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lockfile {
    pub plan: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Package {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inspection {
    pub size: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Licences;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report;

/// Not `Clone`.
pub struct AppState;

#[derive(Debug)]
pub struct ParseError;

impl ::std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        f.write_str("not a lock file")
    }
}

impl ::std::error::Error for ParseError {}

/// Audits the crates that a lock file pins.
pub struct CrateAudit;

#[flow(
    input = Lockfile,
    state = AppState,
    max_attempts = 3,
    base_delay = "5s",
    timeout = "30s",
    with_step_queues,
)]
impl CrateAudit {
    const LIMIT: usize = 10;

    /// Reads the lock file.
    #[step]
    async fn parse(
        input: &Lockfile,
    ) -> Result<Vec<Package>, ParseError> {
        todo!()
    }

    /// Looks at one package.
    #[step(
        map = parse,
        max_attempts = 5,
    )]
    pub async fn inspect(
        item: Package,
        ctx: &StepContext,
    ) -> anyhow::Result<Inspection> {
        todo!()
    }

    fn limit(&self) -> usize {
        Self::LIMIT
    }

    #[step(
        depends_on = [inspect],
        when_exhausted = "skip",
    )]
    async fn licences(
        inspect: &[Inspection],
        state: &AppState,
    ) -> StepResult<Licences> {
        todo!()
    }

    #[step(
        depends_on = [parse, licences],
        timeout = "1h30m",
    )]
    async fn report(
        #[from(parse)]
        packages: &[Package],
        licences: Option<&Licences>,
    ) -> StepResult<Report> {
        todo!()
    }

    #[step(
        if = { plan: "premium" },
        start_delay = "5m",
    )]
    async fn notify(
        input: Lockfile,
    ) -> StepResult<()> {
        todo!()
    }
}
