//! The service: an HTTP server on a port of this machine that is hard to work with, for the sake of
//! the example.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

/// The number of requests that it accepts within [`WINDOW`].
const LIMIT: usize = 3;
const WINDOW: Duration = Duration::from_secs(1);

/// A service that is running; it ends with the program.
pub(crate) struct Service {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

/// The requests so far, by the answer that they got.
#[derive(Clone, Copy, Default)]
pub(crate) struct Requests {
    /// Status 200 or 404.
    pub(crate) answered: usize,
    /// Status 500.
    pub(crate) failed: usize,
    /// Status 429.
    pub(crate) refused: usize,
}

/// The requests that the service remembers.
#[derive(Default)]
struct Log {
    /// The times of the requests that were accepted within the last [`WINDOW`].
    accepted: Vec<Instant>,
    /// The pages for which it has broken down: it does so once for each.
    broken: HashSet<u32>,
    requests: Requests,
}

/// Starts the service.
pub(crate) async fn start() -> anyhow::Result<Service> {
    let log = Arc::new(Mutex::new(Log::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/pages/{number}", get(page))
        .fallback(not_found)
        .with_state(Arc::clone(&log));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Service { address, log })
}

impl Service {
    /// The address of its pages.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Requests {
        self.log.lock().expect("no panic under this lock").requests
    }
}

/// Answers with a page; at the first accepted request for every third page it breaks down.
async fn page(State(log): State<Arc<Mutex<Log>>>, Path(number): Path<u32>) -> Response {
    let mut log = log.lock().expect("no panic under this lock");
    if !log.accepts() {
        return refusal();
    }
    if number % 3 == 0 && log.broken.insert(number) {
        log.requests.failed += 1;
        return (StatusCode::INTERNAL_SERVER_ERROR, "broken down").into_response();
    }
    log.requests.answered += 1;
    format!("<h1>Page {number}</h1>").into_response()
}

async fn not_found(State(log): State<Arc<Mutex<Log>>>) -> Response {
    let mut log = log.lock().expect("no panic under this lock");
    if !log.accepts() {
        return refusal();
    }
    log.requests.answered += 1;
    (StatusCode::NOT_FOUND, "no such page").into_response()
}

fn refusal() -> Response {
    (
        StatusCode::TOO_MANY_REQUESTS,
        [(RETRY_AFTER, WINDOW.as_secs().to_string())],
        "too many requests",
    )
        .into_response()
}

impl Log {
    /// Returns whether one more request is within the limit, and counts it.
    fn accepts(&mut self) -> bool {
        let now = Instant::now();
        self.accepted.retain(|at| now - *at < WINDOW);
        if self.accepted.len() >= LIMIT {
            self.requests.refused += 1;
            return false;
        }
        self.accepted.push(now);
        true
    }
}
