//! Everything that can break, and how it is broken and mended.

use std::{fmt, time::Duration};

use tokio::time::{Instant, sleep};

use super::Mode;
use super::effects;
use super::fleet::{Counts, Fleet};
use super::schedule::{Event, Schedule};
use super::server::{DATABASE, Server, insist};
use super::story::{Plan, Story};
use crate::support::proxy::Proxy;

/// The interval at which the supervisor checks its workers.
const PACE: Duration = Duration::from_millis(20);
/// The longest start of workers on a busy machine.
const START: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct World {
    // Dropped in this order: workers before what they need, the story when everything is said.
    fleet: Fleet,
    proxy: Proxy,
    pub(crate) server: Server,
    schedule: Schedule,
    /// The repairs that are due, with their times.
    mends: Vec<(Instant, Mend)>,
    hurries: bool,
    next_hurry: Instant,
    network: Network,
    story: Story,
}

#[derive(Debug, Clone, Copy)]
enum Mend {
    Network,
    Thaw(usize),
}

/// The disturbances of server and network.
#[derive(Debug, Default, Clone, Copy)]
struct Network {
    crashes: usize,
    session_crashes: usize,
    cuts: usize,
    stalls: usize,
    refusals: usize,
    connections_cut: usize,
}

/// All that the test did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    fleet: Counts,
    network: Network,
}

impl World {
    pub(crate) async fn begin(mode: Mode, plan: Plan, story: Story) -> Self {
        let server = Server::start().await;
        effects::create_table(&server.pool).await;
        let proxy = Proxy::start(&server.socket()).await;
        Self {
            fleet: Fleet::start(mode, url(&proxy), story.logs()),
            proxy,
            server,
            schedule: Schedule::new(plan.seed),
            mends: Vec::new(),
            hurries: plan.hurries,
            next_hurry: Instant::now(),
            network: Network::default(),
            story,
        }
    }

    /// The way to the database through the bad network.
    pub(crate) fn url(&self) -> String {
        url(&self.proxy)
    }

    pub(crate) async fn until_all_serve(&mut self) {
        let deadline = Instant::now() + START;
        while self.fleet.serving().len() < super::fleet::SLOTS {
            assert!(Instant::now() < deadline, "the workers do not start");
            self.pass(PACE).await;
        }
    }

    /// Lets things go wrong, for as long as that, and each as often as every other.
    pub(crate) async fn go_wrong(&mut self, duration: Duration) {
        let end = Instant::now() + duration;
        loop {
            let (pause, event) = self.schedule.next();
            // A long run need not hurry.
            self.pass(if self.hurries { pause } else { pause * 2 })
                .await;
            self.happen(event).await;
            if Instant::now() >= end && self.schedule.is_at_an_end_of_a_deck() {
                return;
            }
        }
    }

    /// From here on nothing goes wrong.
    pub(crate) fn calm_down(&mut self) {
        self.story.tell("calm");
        for (_, mend) in std::mem::take(&mut self.mends) {
            self.mend(mend);
        }
    }

    pub(crate) async fn until_settled(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        loop {
            let open: i64 = insist("runs are counted", async || {
                sqlx::query_scalar("select count(*) from pgflow.runs where status = 'started'")
                    .fetch_one(&self.server.pool)
                    .await
            })
            .await;
            if open == 0 {
                self.story.tell("settled");
                return;
            }
            assert!(Instant::now() < deadline, "{open} runs do not end");
            self.pass(PACE * 5).await;
        }
    }

    /// Ends all workers.
    pub(crate) async fn wind_up(&mut self) {
        // Those that are just being started have to be waited for, too.
        self.until_all_serve().await;
        while !self.fleet.wind_up() {
            sleep(PACE).await;
        }
        self.story.tell("all workers have ended");
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally {
            fleet: self.fleet.counts,
            network: self.network,
        }
    }

    async fn happen(&mut self, event: Event) {
        match event {
            Event::Kill | Event::Terminate | Event::Freeze => self.strike_a_worker(event).await,
            Event::Cut => self.cut("cut"),
            Event::LoseAnswers => {
                self.proxy.withhold_answers();
                let pause = self.schedule.millis(20, 200);
                self.pass(pause).await;
                self.cut("cut, answers lost");
                self.mend_network_soon();
            }
            Event::Stall => {
                let pause = self.schedule.millis(500, 2500);
                self.story.tell(format!("stall for {pause:?}"));
                self.network.stalls += 1;
                self.proxy.stall();
                self.mends.push((Instant::now() + pause, Mend::Network));
            }
            Event::Refuse => {
                let pause = self.schedule.millis(300, 1500);
                self.network.refusals += 1;
                self.proxy.refuse();
                self.cut(&format!("cut, connections refused for {pause:?}"));
                self.mends.push((Instant::now() + pause, Mend::Network));
            }
            Event::Crash => {
                self.story.tell("server crashes");
                self.network.crashes += 1;
                self.server.crash().await;
                self.story.tell("server is back");
            }
            Event::CrashSession => {
                self.story.tell("a session of the server crashes");
                if self.server.crash_a_session().await {
                    self.network.session_crashes += 1;
                }
                self.story.tell("server is back");
            }
        }
    }

    async fn strike_a_worker(&mut self, event: Event) {
        let deadline = Instant::now() + START;
        let slot = loop {
            let serving = self.fleet.serving();
            if let Some(&slot) = self.schedule.rng.choice(&serving) {
                break slot;
            }
            assert!(Instant::now() < deadline, "no worker starts");
            self.pass(PACE).await;
        };
        self.story.tell(format!("{event:?} worker of slot {slot}"));
        match event {
            Event::Kill => self.fleet.kill(slot),
            Event::Terminate => self.fleet.terminate(slot),
            _ => {
                let mut pause = self.schedule.millis(1_000, 7_000);
                // In a long run sometimes longer than it takes until its tasks are given to others.
                if !self.hurries && self.schedule.rng.u8(..4) == 0 {
                    pause += Duration::from_secs(45);
                }
                self.fleet.freeze(slot, pause);
                self.mends.push((Instant::now() + pause, Mend::Thaw(slot)));
            }
        }
    }

    fn cut(&mut self, what: &str) {
        let connections = self.proxy.cut();
        self.story
            .tell(format!("{what}: {connections} connections"));
        self.network.cuts += 1;
        self.network.connections_cut += connections;
    }

    fn mend_network_soon(&mut self) {
        self.mends.push((Instant::now(), Mend::Network));
    }

    fn mend(&mut self, mend: Mend) {
        match mend {
            Mend::Network => {
                self.story.tell("network is back");
                self.proxy.resume();
            }
            Mend::Thaw(slot) => {
                self.story.tell(format!("worker of slot {slot} goes on"));
                self.fleet.thaw(slot);
            }
        }
    }

    /// Lets time pass, in which what is due is mended, and workers are looked after.
    async fn pass(&mut self, pause: Duration) {
        let end = Instant::now() + pause;
        loop {
            let now = Instant::now();
            let (due, later) = std::mem::take(&mut self.mends)
                .into_iter()
                .partition(|(at, _)| *at <= now);
            self.mends = later;
            let due: Vec<(Instant, Mend)> = due;
            for (_, mend) in due {
                self.mend(mend);
            }
            self.fleet.look_after();
            self.hurry().await;
            if Instant::now() >= end {
                return;
            }
            sleep(PACE).await;
        }
    }

    /// Makes tasks that nobody can be working on any more as old as recovery wants them, and lets
    /// it look.
    async fn hurry(&mut self) {
        if !self.hurries || Instant::now() < self.next_hurry {
            return;
        }
        self.next_hurry = Instant::now() + Duration::from_millis(500);
        // Every handler has ended after its timeout of 3 s, except those of frozen processes,
        // which recovery does not wait for either.
        let made_older = sqlx::raw_sql(
            "update pgflow.step_tasks
             set queued_at = queued_at - interval '1 minute', started_at = started_at - interval '1 minute'
             where status = 'started' and started_at between clock_timestamp() - interval '1 minute' and clock_timestamp() - interval '4 seconds';
             update pgflow.claims set look_at = look_at - interval '1 minute' where look_at > now();
             select pgflow.requeue_stalled_tasks()",
        )
        .execute(&self.server.pool)
        .await;
        if let Err(error) = made_older {
            // The next time will do, when the server is back.
            self.story
                .tell(format!("recovery could not be hurried: {error}"));
        }
    }
}

fn url(proxy: &Proxy) -> String {
    let port = proxy.port();
    format!("postgres://postgres@127.0.0.1:{port}/{DATABASE}?sslmode=disable")
}

impl Tally {
    pub(crate) fn assert_everything_happened(&self) {
        let Self { fleet, network } = self;
        for (what, count) in [
            ("kills", fleet.killed),
            ("terminations", fleet.terminated),
            ("freezes", fleet.frozen),
            ("crashes", network.crashes),
            ("crashes of sessions", network.session_crashes),
            ("cuts", network.cuts),
            ("stalls", network.stalls),
            ("refusals", network.refusals),
            ("connections cut", network.connections_cut),
        ] {
            assert!(count > 0, "there were no {what}: {self}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fleet, network } = self;
        write!(
            f,
            "{} kills, {} terminations, {} freezes, {} starts without a database, {} + {} crashes of the server, {} cuts ({} connections), \
             {} stalls, {} refusals",
            fleet.killed,
            fleet.terminated,
            fleet.frozen,
            fleet.failed_starts,
            network.crashes,
            network.session_crashes,
            network.cuts,
            network.connections_cut,
            network.stalls,
            network.refusals
        )
    }
}
