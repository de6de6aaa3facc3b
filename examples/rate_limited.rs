//! Copies pages of a service that refuses to be asked too often: `cargo run --example rate_limited`
//!
//! A refusal says when to come back, and the step says so to Postgres. A page that does not exist
//! is not asked for again. Runs on the server that `DATABASE_URL` names, else on a private one that
//! ends with the program.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{error::Error, fmt};

use pgflow::{dev::DevDatabase, prelude::*};

/// Copies pages of a site.
struct Mirror;

#[flow(input = Vec<String>, state = Arc<Site>)]
impl Mirror {
    /// Fetches one page.
    #[step(map = input)]
    async fn page(item: &str, state: &Arc<Site>) -> StepResult<String> {
        state.get(item).map_err(what_follows)
    }

    /// Fetches the site's licence, which not every site has.
    #[step(when_exhausted = "skip")]
    async fn licence(state: &Arc<Site>) -> StepResult<String> {
        state.get("/licence").map_err(what_follows)
    }

    /// Tells what was copied.
    #[step(depends_on = [page, licence])]
    async fn summary(page: &[String], licence: Option<&str>) -> StepResult<String> {
        let bytes: usize = page.iter().map(String::len).sum();
        let licence = licence.unwrap_or("no licence");
        Ok(format!("{} pages, {bytes} bytes, {licence}", page.len()))
    }
}

/// Decides about further attempts after an error of the site.
fn what_follows(error: Refusal) -> StepError {
    match error {
        Refusal::RateLimited { retry_after } => StepError::postpone(retry_after, error),
        Refusal::NotFound { .. } => StepError::permanent(error),
    }
}

/// The reason why the site returned no page.
#[derive(Debug)]
enum Refusal {
    /// Status 429, with the header `Retry-After`.
    RateLimited { retry_after: Duration },
    /// Status 404.
    NotFound { page: String },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLimited { retry_after } => {
                write!(f, "too many requests, come back in {retry_after:.1?}")
            }
            Self::NotFound { page } => write!(f, "there is no page {page}"),
        }
    }
}

impl Error for Refusal {}

/// A site within this program, which answers a few requests per second.
#[derive(Default)]
struct Site {
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    /// The times at which the requests of the last second were answered.
    answered: Vec<Instant>,
    refused: usize,
}

impl Site {
    const PER_SECOND: usize = 4;
    const WINDOW: Duration = Duration::from_secs(1);

    fn get(&self, page: &str) -> Result<String, Refusal> {
        let mut log = self.log.lock().expect("no panic under this lock");
        let now = Instant::now();
        log.answered.retain(|at| now - *at < Self::WINDOW);
        if log.answered.len() >= Self::PER_SECOND {
            log.refused += 1;
            let retry_after = Self::WINDOW.saturating_sub(now - log.answered[0]);
            return Err(Refusal::RateLimited { retry_after });
        }
        log.answered.push(now);
        match page.strip_prefix("/pages/") {
            Some(title) => Ok(format!("<h1>{title}</h1>")),
            None => Err(Refusal::NotFound { page: page.into() }),
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let database = DevDatabase::start().await?;
    let pool = database.migrated_pool().await?;
    let site = Arc::new(Site::default());
    let worker = FlowWorker::<Mirror>::with_state(Arc::clone(&site))
        .poll_interval(Duration::from_millis(100))
        .start(&pool)
        .await?;

    let pages = (1..=10).map(|n| format!("/pages/{n}")).collect();
    let run = Client::new(pool).start::<Mirror>(&pages).await?;
    let output = run.wait().await;
    worker.stop().await?;
    println!("{}", output?.summary);
    let refused = site.log.lock().expect("no panic under this lock").refused;
    println!("{refused} requests were refused, and made again when the site said");
    Ok(())
}
