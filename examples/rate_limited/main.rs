//! Copies pages from a service that allows three requests a second and sometimes breaks down:
//! `cargo run --example rate_limited`, or `cargo run --example rate_limited -- 100` for 100 pages.
//!
//! A refusal is not a failure: the page is postponed until the time that the service names, and
//! keeps its three attempts for real failures. Runs on the server that `DATABASE_URL` names, else
//! on a private one that ends with the program.

mod service;

use std::{env, time::Duration};

use anyhow::Context;
use pgflow::{dev::DevDatabase, prelude::*};
use reqwest::{StatusCode, header::RETRY_AFTER};

/// Copies pages of a site.
///
/// A page fails when three requests have failed, or when it has only been refused for ten minutes.
/// Failed requests are repeated after about 2 s, then 4 s, and so on, but never after more than 10
/// s.
struct Mirror;

#[flow(input = Vec<String>, state = Site, max_attempts = 3, base_delay = "1s", max_delay = "10s", give_up_after = "10m")]
impl Mirror {
    /// Fetches one page.
    #[step(map = input)]
    async fn page(item: &str, state: &Site) -> StepResult<String> {
        state.get(item).await
    }

    /// Fetches the site's licence, which not every site has.
    #[step(when_exhausted = "skip")]
    async fn licence(state: &Site) -> StepResult<String> {
        state.get("/licence").await
    }

    /// Adds up what was copied.
    #[step(depends_on = [page, licence])]
    async fn summary(page: &[String], licence: Option<&str>) -> StepResult<String> {
        let bytes: usize = page.iter().map(String::len).sum();
        let licence = licence.unwrap_or("no licence");
        Ok(format!("{} pages, {bytes} bytes, {licence}", page.len()))
    }
}

/// The site, as its clients see it.
struct Site {
    url: String,
    client: reqwest::Client,
}

impl Site {
    /// Fetches a page, or returns an error that decides about further attempts.
    async fn get(&self, page: &str) -> StepResult<String> {
        let response = self.client.get(self.url.clone() + page).send().await?;
        match response.status() {
            // Asked too often: asks again later, at no cost.
            StatusCode::TOO_MANY_REQUESTS => Err(StepError::postpone(
                retry_after(&response)?,
                "the site refused the request (429)",
            )),
            // Not there: asking again would be no use.
            StatusCode::NOT_FOUND => Err(StepError::permanent(format!("there is no page {page}"))),
            // Anything else that is not the page is a failed attempt.
            _ => Ok(response.error_for_status()?.text().await?),
        }
    }
}

/// The time that the site asks its clients to wait.
fn retry_after(response: &reqwest::Response) -> anyhow::Result<Duration> {
    let seconds = (response.headers().get(RETRY_AFTER)).context("429 without `Retry-After`")?;
    Ok(Duration::from_secs(seconds.to_str()?.parse()?))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let count = match env::args().nth(1) {
        Some(count) => count.parse().context("the number of pages")?,
        None => 10,
    };
    let service = service::start().await?;
    let site = Site {
        url: service.url(),
        client: reqwest::Client::new(),
    };

    let database = DevDatabase::start().await?;
    let pool = database.migrated_pool().await?;
    let worker = FlowWorker::<Mirror>::with_state(site)
        .poll_interval(Duration::from_millis(100))
        .start(&pool)
        .await?;
    let pages = (1..=count).map(|n: u32| format!("/pages/{n}")).collect();
    let run = Client::new(pool).start::<Mirror>(&pages).await?;
    let output = run.wait().await;
    worker.stop().await?;

    println!("{}", output?.summary);
    let requests = service.requests();
    println!(
        "{} requests were answered, {} failed, {} were refused and made again",
        requests.answered, requests.failed, requests.refused
    );
    Ok(())
}
