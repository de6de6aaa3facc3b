//! Workers that are started together and end together; often there is just one.

use std::error::Error;

use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, error, info};
use uuid::Uuid;

use super::{
    OptionProblem, WorkerError,
    builder::Builder,
    coverage,
    handle::Running,
    requests::{Request, Requests, forward},
    serve::{GRACE, serve},
    shutdown::Stop,
};
use crate::startup::{self, StartupError, Target};

/// Workers of one process, of any flows.
#[derive(Debug, Default)]
pub struct Group {
    members: Vec<Builder>,
    shutdown_on: Option<Request>,
    /// For members that do not say it themselves.
    listen: Option<bool>,
}

impl Group {
    pub(crate) fn new(members: Vec<Builder>, shutdown_on: Option<Request>) -> Self {
        Self {
            members,
            shutdown_on,
            listen: None,
        }
    }

    pub(crate) fn of(mut builder: Builder) -> Self {
        let shutdown_on = builder.shutdown_on.take();
        Self::new(vec![builder], shutdown_on)
    }

    /// What asks one group to stop does not ask the other.
    pub(crate) fn add(&mut self, other: Self) {
        for mut member in other.members {
            member.shutdown_on = either(member.shutdown_on, other.shutdown_on.clone());
            self.members.push(member);
        }
    }

    pub(crate) fn shutdown_on(&mut self, request: Request) {
        self.shutdown_on = Some(request);
    }

    pub(crate) fn listen(&mut self, listen: bool) {
        self.listen = Some(listen);
    }

    /// What the workers serve, in the order in which they are started.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.members.iter().map(Builder::target)
    }

    /// Starts all, and returns when all are registered; they then serve in the background.
    pub(crate) async fn start(mut self, pool: &PgPool) -> Result<Running, StartupError> {
        let stop = Stop::default();
        let request = self.shutdown_on.take();
        let request = request.map(|request| forward(request, stop.clone()));
        let serving = self.start_all(pool, &stop).await?;
        let worker_ids = serving.worker_ids.clone();
        Ok(Running::spawn(worker_ids, stop, async move {
            let _request = request;
            serving.join().await
        }))
    }

    /// Starts all and serves until a request comes, then drains; a second request ends that at once, as dropping the future does.
    pub(crate) async fn run(mut self, pool: &PgPool) -> Result<(), WorkerError> {
        let mut requests = Requests::new(self.shutdown_on.take())?;
        let stop = Stop::default();
        let work = async {
            match self.start_all(pool, &stop).await {
                Ok(serving) => serving.join().await,
                Err(StartupError::ShutDown) => Ok(()),
                Err(error) => Err(error.into()),
            }
        };
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => return result,
            () = requests.next() => info!("asked to stop"),
        }
        stop.request();
        tokio::select! {
            result = work => result,
            () = requests.next() => Err(WorkerError::Interrupted),
        }
    }

    /// Starts one after the other. When one can't start, those that did are shut down before the error is returned.
    async fn start_all(mut self, pool: &PgPool, stop: &Stop) -> Result<Serving, StartupError> {
        self.check()?;
        for member in &mut self.members {
            member.settings.listen = member.settings.listen.or(self.listen);
        }
        let targets: Vec<Target> = self.targets().collect();
        let mut serving = Serving::new(stop.clone());
        for member in self.members {
            if stop.is_requested() && !serving.worker_ids.is_empty() {
                break;
            }
            let target = member.target();
            let Err(error) = serving.start(member, pool).await else {
                continue;
            };
            let is_asked = matches!(error, StartupError::ShutDown);
            if is_asked && !stop.is_requested() {
                // It alone, by its own request: the others go on.
                continue;
            }
            if targets.len() > 1 && !is_asked {
                error!(
                    flow = target.definition.slug,
                    step = target.step_slug(),
                    error = &error as &dyn Error,
                    "worker did not start; those of this process that did are shut down"
                );
            }
            stop.request();
            // What they ended with is in the log; why none runs is the error.
            let _ = serving.join().await;
            return Err(error);
        }
        serving.coverage = Some(coverage::check_later(pool, targets));
        Ok(serving)
    }

    /// Everything that can be said without a database, of all workers.
    fn check(&self) -> Result<(), StartupError> {
        let mut problems = Vec::new();
        if self.members.is_empty() {
            problems.push(OptionProblem::no_workers());
        }
        for member in &self.members {
            let target = member.target();
            match startup::check(target, &member.options()) {
                Err(StartupError::InvalidOptions { problems: found }) if self.members.len() > 1 => {
                    let name = name(target);
                    problems.extend(found.into_iter().map(|problem| problem.of(name.clone())));
                }
                checked => checked?,
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(StartupError::InvalidOptions { problems })
        }
    }
}

fn either(first: Option<Request>, second: Option<Request>) -> Option<Request> {
    match (first, second) {
        (Some(first), Some(second)) => Some(super::requests::request(async {
            tokio::select! {
                () = first => {}
                () = second => {}
            }
        })),
        (first, second) => first.or(second),
    }
}

fn name(target: Target) -> String {
    let flow = target.definition.slug;
    match target.step_slug() {
        Some(step) => format!("step `{step}` of flow `{flow}`"),
        None => format!("flow `{flow}`"),
    }
}

/// Registered workers. Dropping it ends them at once.
struct Serving {
    workers: JoinSet<Result<(), WorkerError>>,
    worker_ids: Vec<Uuid>,
    stop: Stop,
    coverage: Option<AbortOnDropHandle<()>>,
}

impl Serving {
    fn new(stop: Stop) -> Self {
        Self {
            workers: JoinSet::new(),
            worker_ids: Vec::new(),
            stop,
            coverage: None,
        }
    }

    async fn start(&mut self, mut member: Builder, pool: &PgPool) -> Result<(), StartupError> {
        let stop = self.stop.child();
        let request = member.shutdown_on.take();
        let request = request.map(|request| forward(request, stop.clone()));
        // After a request a registration in progress may come to its end, so that the worker does not seem to live.
        // Boxed: of all that starting takes, a caller's future would hold the most, for as long as it is.
        let registered = stop.within(GRACE, Box::pin(member.register(pool, stop.clone())));
        let (shared, span) = registered.await.unwrap_or(Err(StartupError::ShutDown))?;
        self.worker_ids.push(shared.worker_id);
        let serve = async move {
            let _request = request;
            serve(shared).await
        };
        self.workers.spawn(serve.instrument(span));
        Ok(())
    }

    /// Waits until all have ended; the first that ends with an error asks the others to stop, and its error is returned.
    async fn join(mut self) -> Result<(), WorkerError> {
        let mut first = Ok(());
        while let Some(ended) = self.workers.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(WorkerError::Task(error)));
            let Err(error) = ended else {
                continue;
            };
            if !self.workers.is_empty() && !self.stop.is_requested() {
                error!(
                    error = &error as &dyn Error,
                    workers = self.workers.len(),
                    "a worker failed, the others of this process shut down"
                );
            }
            self.stop.request();
            first = first.and(Err(error));
        }
        first
    }
}
