//! A network between programs and a server of tests, for the bad days of networks.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

/// Listens on a port of its own, and carries every connection to the Unix socket of a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    traffic: watch::Sender<Traffic>,
    open: Arc<AtomicUsize>,
    _accepting: AbortOnDropHandle<()>,
}

/// The traffic that passes.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    connections: bool,
    requests: bool,
    answers: bool,
    /// The number of times that all connections were cut.
    cuts: u64,
    /// The number of times that all connections were abandoned.
    abandons: u64,
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Requests,
    Answers,
}

impl Traffic {
    fn lets_through(self, direction: Direction) -> bool {
        match direction {
            Direction::Requests => self.requests,
            Direction::Answers => self.answers,
        }
    }
}

impl Proxy {
    /// Everything gets through at first.
    pub(crate) async fn start(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (traffic, receiver) = watch::channel(Traffic {
            connections: true,
            requests: true,
            answers: true,
            cuts: 0,
            abandons: 0,
        });
        let open = Arc::new(AtomicUsize::new(0));
        let accepting = accept(listener, socket.to_owned(), receiver, Arc::clone(&open));
        Self {
            port,
            traffic,
            open,
            _accepting: AbortOnDropHandle::new(tokio::spawn(accepting)),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Closes all connections, wherever in a message they are; returns how many.
    pub(crate) fn cut(&self) -> usize {
        let open = self.open.load(Ordering::Relaxed);
        self.traffic.send_modify(|traffic| traffic.cuts += 1);
        open
    }

    /// Nothing gets through, and nobody is told; new connections are accepted and get no answer.
    pub(crate) fn stall(&self) {
        self.traffic.send_modify(|traffic| {
            traffic.requests = false;
            traffic.answers = false;
        });
    }

    /// The server gets its requests, and does what they ask for, but its answers do not get
    /// through.
    pub(crate) fn withhold_answers(&self) {
        self.traffic.send_modify(|traffic| traffic.answers = false);
    }

    /// Nothing gets through the connections that are open now, ever, and nobody is told: as if the
    /// server had lost its power.
    pub(crate) fn abandon(&self) {
        self.traffic.send_modify(|traffic| traffic.abandons += 1);
    }

    /// New connections are closed at once.
    pub(crate) fn refuse(&self) {
        self.traffic
            .send_modify(|traffic| traffic.connections = false);
    }

    /// Everything gets through again, what was held up as well.
    pub(crate) fn resume(&self) {
        self.traffic.send_modify(|traffic| {
            traffic.connections = true;
            traffic.requests = true;
            traffic.answers = true;
        });
    }
}

async fn accept(
    listener: TcpListener,
    socket: PathBuf,
    traffic: watch::Receiver<Traffic>,
    open: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client that is gone before it was accepted is nobody's concern; dropping a
                // client closes its connection.
                if let Ok((client, _)) = accepted && traffic.borrow().connections {
                    let counted = Counted::new(&open);
                    let carried = carry(client, socket.clone(), traffic.clone());
                    connections.spawn(async move {
                        let _counted = counted;
                        // However a connection ends, dropping both of its ends closes them.
                        let _ = carried.await;
                    });
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Counts one connection while it is open.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Carries a connection until one side closes it, or it is cut.
async fn carry(
    mut client: TcpStream,
    socket: PathBuf,
    traffic: watch::Receiver<Traffic>,
) -> io::Result<()> {
    let mut cut = traffic.clone();
    let cuts = traffic.borrow().cuts;
    client.set_nodelay(true)?;
    let work = async {
        let mut server = UnixStream::connect(socket).await?;
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            ended = pump(from_client, to_server, Direction::Requests, traffic.clone()) => ended,
            ended = pump(from_server, to_client, Direction::Answers, traffic.clone()) => ended,
        }
    };
    tokio::select! {
        ended = work => ended,
        _ = cut.wait_for(|traffic| traffic.cuts != cuts) => Ok(()),
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    mut traffic: watch::Receiver<Traffic>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    let abandons = traffic.borrow().abandons;
    loop {
        let length = from.read(&mut buffer).await?;
        // An end, too, is not seen before it gets through.
        if traffic
            .wait_for(|traffic| traffic.lets_through(direction) && traffic.abandons == abandons)
            .await
            .is_err()
            || length == 0
        {
            return Ok(());
        }
        to.write_all(&buffer[..length]).await?;
    }
}

mod tests {
    use std::time::Duration;

    use sqlx::{
        ConnectOptions, PgConnection, PgPool,
        postgres::{PgConnectOptions, PgSslMode},
    };

    use super::Proxy;
    use crate::support::{TestDb, eventually};

    const DEADLINE: Duration = Duration::from_secs(20);

    async fn proxy(database: &TestDb) -> (Proxy, PgConnectOptions) {
        let options: PgConnectOptions = database.url.parse().unwrap();
        let directory = options.get_socket().expect("tests use a socket");
        let socket = directory.join(format!(".s.PGSQL.{}", options.get_port()));
        let proxy = Proxy::start(&socket).await;
        let through = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(proxy.port())
            .username("postgres")
            .database(&database.name)
            .ssl_mode(PgSslMode::Disable);
        (proxy, through)
    }

    async fn answer(connection: &mut PgConnection) -> sqlx::Result<i32> {
        sqlx::query_scalar("select 42").fetch_one(connection).await
    }

    async fn until_mark_is(pool: &PgPool, mark: i32) {
        eventually(DEADLINE, "the statement is carried out", async || {
            let found: Option<i32> = sqlx::query_scalar("select mark from marks")
                .fetch_optional(pool)
                .await
                .unwrap();
            (found == Some(mark)).then_some(())
        })
        .await;
    }

    #[tokio::test]
    async fn a_cut_ends_every_connection_and_lets_new_ones_through() {
        let database = TestDb::blank().await;
        let (proxy, options) = proxy(&database).await;
        let mut one = options.connect().await.unwrap();
        let mut other = options.connect().await.unwrap();
        assert_eq!(answer(&mut one).await.unwrap(), 42);
        assert_eq!(proxy.cut(), 2);
        assert!(answer(&mut one).await.is_err());
        assert!(answer(&mut other).await.is_err());
        let mut next = options.connect().await.unwrap();
        assert_eq!(answer(&mut next).await.unwrap(), 42);
    }

    #[tokio::test]
    async fn what_is_held_up_by_a_stall_gets_through_after_it() {
        let database = TestDb::blank().await;
        let (proxy, options) = proxy(&database).await;
        let mut connection = options.connect().await.unwrap();
        proxy.stall();
        let late = tokio::spawn(async move { answer(&mut connection).await.unwrap() });
        let connecting = tokio::spawn(async move { options.connect().await.map(drop) });
        // Both would have ended long before a server answers elsewhere twenty times.
        for _ in 0..20 {
            sqlx::query("select 1")
                .execute(&database.pool)
                .await
                .unwrap();
        }
        assert!(!late.is_finished() && !connecting.is_finished());
        proxy.resume();
        assert_eq!(late.await.unwrap(), 42);
        connecting.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_request_whose_answer_is_withheld_is_carried_out() {
        let database = TestDb::blank().await;
        let (proxy, options) = proxy(&database).await;
        sqlx::query("create table marks (mark int)")
            .execute(&database.pool)
            .await
            .unwrap();
        let mut connection = options.connect().await.unwrap();
        proxy.withhold_answers();
        let request = tokio::spawn(async move {
            // One message and no preparation, which would wait for an answer of its own.
            sqlx::raw_sql("insert into marks values (7)")
                .execute(&mut connection)
                .await
                .map(drop)
        });
        until_mark_is(&database.pool, 7).await;
        assert!(!request.is_finished());
        proxy.cut();
        assert!(request.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn refused_connections_are_closed_and_others_go_on() {
        let database = TestDb::blank().await;
        let (proxy, options) = proxy(&database).await;
        let mut early = options.connect().await.unwrap();
        proxy.refuse();
        assert!(options.connect().await.is_err());
        assert_eq!(answer(&mut early).await.unwrap(), 42);
        proxy.resume();
        let mut late = options.connect().await.unwrap();
        assert_eq!(answer(&mut late).await.unwrap(), 42);
    }
}
