//! A worker before it is started: what all kinds of workers have in common.

use std::{fmt, sync::Arc};

use sqlx::PgPool;
use tracing::{Span, info, info_span};
use uuid::Uuid;

use super::{
    WorkerOptions, attempts::Attempts, budget::Budget, conditions, handlers::Handlers,
    health::Vitals, hub, options::Settings, requests::Request, serve::Shared, shutdown::Stop,
    wakeup::Wakeup,
};
use crate::startup::{self, StartupError, Target};

/// A flow's worker, or one of its steps'.
pub(crate) struct Builder {
    pub(crate) handlers: Arc<dyn Handlers>,
    pub(crate) step: Option<usize>,
    pub(crate) settings: Settings,
    pub(crate) shutdown_on: Option<Request>,
}

impl Builder {
    pub(crate) fn new(handlers: Arc<dyn Handlers>, step: Option<usize>) -> Self {
        Self {
            handlers,
            step,
            settings: Settings::default(),
            shutdown_on: None,
        }
    }

    pub(crate) fn target(&self) -> Target {
        Target {
            definition: self.handlers.definition(),
            step: self.step,
        }
    }

    pub(crate) fn options(&self) -> WorkerOptions {
        let mut options = self.settings.options(|| match self.step {
            Some(_) => self.target().queue_name(),
            None => self.target().definition.slug.to_owned(),
        });
        let build = || self.handlers.build().map(str::to_owned);
        options.build = options.build.or_else(build);
        options
    }

    /// Registers the worker, unless a stop is requested while it waits for others; it then may
    /// claim.
    pub(crate) async fn register(
        &self,
        pool: &PgPool,
        sibling: Option<Uuid>,
        stop: Stop,
    ) -> Result<(Arc<Shared>, Span), StartupError> {
        let (target, options) = (self.target(), self.options());
        let thread = hub::thread::handle().map_err(StartupError::Thread)?;
        let registered = startup::start(pool, target, &options, sibling, &stop).await?;
        let flow = target.definition.slug;
        let span = info_span!(
            "pgflow.worker",
            flow,
            step = target.step_slug(),
            queue = registered.queue_name,
            worker_id = %registered.worker_id
        );
        span.in_scope(|| {
            // Flow, step, queue and id stand in the span.
            info!(
                function = options.function_name,
                concurrency = options.concurrency,
                definition = registered.compile_status.as_str(),
                "worker started"
            );
            if let Some(fields) = self.handlers.input_fields() {
                conditions::check(target, fields);
            }
        });
        let shared = Shared {
            pool: pool.clone(),
            worker_id: registered.worker_id,
            queue_name: registered.queue_name,
            handlers: Arc::clone(&self.handlers),
            wakeup: Wakeup::of(target),
            attempts: Attempts::new(options.abandon_after, registered.at),
            budget: Budget::of(pool),
            stop,
            vitals: Arc::new(Vitals::new(registered.at)),
            thread,
            options,
        };
        Ok((Arc::new(shared), span))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target();
        f.debug_struct("Builder")
            .field("flow", &target.definition.slug)
            .field("step", &target.step_slug())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The option functions of a builder, whose `settings` and `shutdown_on` are where the arguments
/// say.
macro_rules! option_functions {
    ($($settings:ident).+, $($shutdown_on:ident).+) => {
        /// The number of tasks that a worker runs side by side: 1 to 10,000; 10 by default. It
        /// bounds the inputs and outputs that are in memory: for large ones set less.
        pub fn concurrency(mut self, tasks: usize) -> Self {
            self.$($settings).+.concurrency = Some(tasks);
            self
        }

        /// The pause of an idle worker between two looks into its queue, jittered by a fifth: 10 ms
        /// to 1 h; 1 s by default. Three or more idle workers of a process that share a pool are
        /// looked for together, in one statement.
        pub fn poll_interval(mut self, interval: ::std::time::Duration) -> Self {
            self.$($settings).+.poll_interval = Some(interval);
            self
        }

        /// Sets the time for which handlers may continue after their worker was asked to stop: at
        /// most 1 h; 30 s by default.
        pub fn shutdown_timeout(mut self, timeout: ::std::time::Duration) -> Self {
            self.$($settings).+.shutdown_timeout = Some(timeout);
            self
        }

        /// Sets the longest wait at startup for workers of another definition of the flow, so that
        /// a local database can replace it: at most 1 h; 45 s by default, which is enough for
        /// workers with the default shutdown timeout. A production database replaces nothing, so no
        /// worker waits there.
        pub fn drain_timeout(mut self, timeout: ::std::time::Duration) -> Self {
            self.$($settings).+.drain_timeout = Some(timeout);
            self
        }

        /// Sets who restarts the worker's process after its end: a supervisor
        /// ([`Process`](crate::worker::StartMode::Process), the default), or the database, which
        /// then invokes a URL ([`Http`](crate::worker::StartMode::Http)).
        pub fn start_mode(mut self, start_mode: $crate::worker::StartMode) -> Self {
            self.$($settings).+.start_mode = Some(start_mode);
            self
        }

        /// Sets whether the database's notifications wake the worker; yes by default. They come
        /// over one connection per process and pool, which also carries heartbeats and is made as
        /// those of the pool are, in addition to them.
        ///
        /// Say no behind a pooler in transaction mode: it gives notifications to whatever client
        /// comes next, whose call then fails. The connection does not listen when all workers that
        /// share the pool say no; when one says yes, its notifications wake the others as well.
        pub fn listen(mut self, listen: bool) -> Self {
            self.$($settings).+.listen = Some(listen);
            self
        }

        /// The time after which the worker cancels and drops its attempts when no heartbeat sent
        /// within it was answered: at least 6 s, and less than `lost_after` of the installation
        /// (30 s unless changed). Not set by default.
        ///
        /// A worker that can't reach the database continues with its handlers, so that an outage
        /// of the database dooms no attempt. When only this worker is cut off, others repeat its
        /// tasks meanwhile, and two attempts overlap until it is back. Set this where that must
        /// not be; each longer outage then costs an attempt of every task that runs.
        ///
        /// Limits: a handler that blocks its thread, or waits in `spawn_blocking`, can't be
        /// dropped; neither can what it spawned, which has to look at `ctx.cancelled()`. While a
        /// whole machine is suspended its clock may stand still.
        pub fn abandon_after(mut self, duration: ::std::time::Duration) -> Self {
            self.$($settings).+.abandon_after = Some(duration);
            self
        }

        /// The name of the build that this worker runs: 1 to 128 characters, none of them a control
        /// character; by default the version of the crate that the flow is declared in.
        ///
        /// `pgflow workers list` shows it, and an attempt that can't read a stored value names it
        /// and the build that wrote the value.
        pub fn build(mut self, build: impl Into<String>) -> Self {
            self.$($settings).+.build = Some(build.into());
            self
        }

        /// Sets whether starting applies pending migrations of schema `pgflow` first; no by
        /// default.
        pub fn migrate(mut self, migrate: bool) -> Self {
            self.$($settings).+.migrate = Some(migrate);
            self
        }

        /// Shuts down when the future resolves, instead of on SIGTERM and ctrl-c.
        ///
        /// For a `CancellationToken` give `token.cancelled_owned()`. Added to
        /// [`Workers`](crate::worker::Workers), it stops what it was set for, and a signal still
        /// stops everything.
        pub fn shutdown_on(
            mut self,
            request: impl ::std::future::Future<Output = ()> + Send + 'static,
        ) -> Self {
            self.$($shutdown_on).+ = Some($crate::worker::requests::request(request));
            self
        }

        /// For tests of what programs of other releases find.
        #[doc(hidden)]
        pub fn as_release(mut self, release: $crate::migrate::Release) -> Self {
            self.$($settings).+.release = Some(release);
            self
        }
    };
}

pub(crate) use option_functions;
