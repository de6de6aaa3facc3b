//! Workers that are started together and end together; often there is just one.

use std::{error::Error, ptr};

use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};
use uuid::Uuid;

use super::{
    OptionProblem, WorkerError,
    builder::Builder,
    coverage,
    handle::Running,
    health::HealthCheck,
    requests::{Request, Requests, forward},
    shutdown::Stop,
    supervise::{Crew, Member},
};
use crate::startup::{self, StartupError, Target};

/// Workers of one process, of any flows.
#[derive(Debug, Default)]
pub struct Group {
    members: Vec<Builder>,
    shutdown_on: Option<Request>,
    /// For members that do not say it themselves.
    listen: Option<bool>,
    build: Option<String>,
    health: HealthCheck,
}

impl Group {
    pub(crate) fn new(members: Vec<Builder>, shutdown_on: Option<Request>) -> Self {
        Self {
            members,
            shutdown_on,
            listen: None,
            build: None,
            health: HealthCheck::default(),
        }
    }

    pub(crate) fn of(mut builder: Builder) -> Self {
        let shutdown_on = builder.shutdown_on.take();
        Self::new(vec![builder], shutdown_on)
    }

    /// Adds the other group; a stop request for one of them does not affect the other.
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

    pub(crate) fn build(&mut self, build: String) {
        self.build = Some(build);
    }

    pub(crate) fn health(&self) -> HealthCheck {
        self.health.clone()
    }

    /// Returns the flows or steps of the workers, in the order in which they are started.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.members.iter().map(Builder::target)
    }

    /// Starts all, and returns when all are registered; they then serve in the background.
    pub(crate) async fn start(mut self, pool: &PgPool) -> Result<Running, StartupError> {
        let stop = Stop::default();
        let request = self.shutdown_on.take();
        let request = request.map(|request| forward(request, stop.clone()));
        let health = self.health();
        let serving = self.start_all(pool, &stop).await?;
        let worker_ids = serving.worker_ids.clone();
        Ok(Running::spawn(worker_ids, health, stop, async move {
            let _request = request;
            serving.join().await
        }))
    }

    /// Starts all and serves until a request comes, then drains. A second signal ends the process;
    /// dropping the future ends the workers at once.
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
        work.await
    }

    /// Starts one after the other. One whose function is out of service is waited for while others
    /// serve. When one can't start for another reason, those that did are shut down before the
    /// error is returned.
    async fn start_all(mut self, pool: &PgPool, stop: &Stop) -> Result<Serving, StartupError> {
        for Builder { settings, .. } in &mut self.members {
            settings.listen = settings.listen.or(self.listen);
            settings.build = settings.build.take().or_else(|| self.build.clone());
        }
        self.check()?;
        let targets: Vec<Target> = self.targets().collect();
        let mut serving = Serving::new(stop.clone());
        // Those that start first continue until all have been tried.
        let trying = serving.crew.enter();
        let mut absent = Vec::new();
        for (builder, target) in self.members.into_iter().zip(&targets) {
            if stop.is_requested() && !serving.worker_ids.is_empty() {
                break;
            }
            let place = self.health.add(*target);
            let member = Member::new(builder, pool, stop, place, serving.crew.clone());
            let Err((error, member)) = serving.start(member).await else {
                continue;
            };
            let error = match error {
                // It alone, by its own request: the others continue.
                StartupError::ShutDown if !stop.is_requested() => continue,
                StartupError::FunctionDisabled(disabled) => {
                    absent.push((member, disabled));
                    continue;
                }
                error => error,
            };
            if targets.len() > 1 && !matches!(error, StartupError::ShutDown) {
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
        if serving.worker_ids.is_empty()
            && let Some((_, disabled)) = absent.first()
        {
            return Err(disabled.clone().into());
        }
        for (member, disabled) in absent {
            member.report_absence(&disabled);
            serving.workers.spawn(member.live_later(disabled));
        }
        drop(trying);
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

/// The workers of a process. Dropping it ends them at once.
struct Serving {
    workers: JoinSet<Result<(), WorkerError>>,
    worker_ids: Vec<Uuid>,
    crew: Crew,
    /// The flow or step of each of them.
    targets: Vec<Target>,
    stop: Stop,
    coverage: Option<AbortOnDropHandle<()>>,
}

impl Serving {
    fn new(stop: Stop) -> Self {
        Self {
            workers: JoinSet::new(),
            worker_ids: Vec::new(),
            crew: Crew::default(),
            targets: Vec::new(),
            stop,
            coverage: None,
        }
    }

    /// A worker of another step of the same flow: its start has checked and stored the definition.
    fn sibling_of(&self, target: Target) -> Option<Uuid> {
        target.step?;
        let is_sibling = |other: &Target| ptr::eq(other.definition, target.definition);
        let first = self.targets.iter().position(is_sibling)?;
        self.worker_ids.get(first).copied()
    }

    async fn start(&mut self, member: Member) -> Result<(), (StartupError, Member)> {
        let target = member.target();
        let registered = match member.register(self.sibling_of(target)).await {
            Ok(registered) => registered,
            Err(error) => return Err((error, member)),
        };
        self.worker_ids.push(registered.worker_id());
        self.targets.push(target);
        self.workers.spawn(member.live(registered));
        Ok(())
    }

    /// Waits until all have ended; returns the first error. One that fails stops alone, unless by
    /// a fault of pgflow: then the supervisor of the process has to start it again.
    async fn join(mut self) -> Result<(), WorkerError> {
        let mut first = Ok(());
        while let Some(ended) = self.workers.join_next().await {
            let ended = ended.unwrap_or_else(|error| {
                self.stop.request();
                Err(WorkerError::Task(error))
            });
            let Err(error) = ended else {
                continue;
            };
            if !self.workers.is_empty() && !self.stop.is_requested() {
                error!(
                    error = &error as &dyn Error,
                    workers = self.workers.len(),
                    "a worker failed and has stopped, the others of this process go on"
                );
            }
            first = first.and(Err(error));
        }
        first
    }
}
