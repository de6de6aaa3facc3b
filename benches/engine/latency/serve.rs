//! The worker in a process of its own.

use std::{io, thread};

use tokio::sync::oneshot;

use crate::{
    Result,
    flows::{Data, Measured, Work},
    options::Serve,
    scenario::with_flow,
    server,
};

/// Serves until the standard input ends.
pub(crate) async fn serve(options: &Serve) -> Result<()> {
    with_flow!(Shape::Chain3, options.mode, run(options))
}

async fn run<F: Measured>(options: &Serve) -> Result<()> {
    let url = std::env::var("DATABASE_URL")?;
    let mut connect = server::connect_options(&url, options.session)?;
    if let Some(database) = &options.database {
        connect = connect.database(database);
    }
    let pool = server::open(connect, options.worker.connections).await?;
    let work = Work::new(Data::of_bytes(options.worker.payload), usize::MAX);
    work.open();
    let workers = F::start_workers(&pool, options.worker.concurrency, work).await?;
    println!("{}", super::process::READY);
    let (ended, input) = oneshot::channel();
    thread::spawn(move || ended.send(io::copy(&mut io::stdin(), &mut io::sink())));
    tokio::select! {
        _ = input => {}
        () = workers.stopped() => {}
    }
    workers.stop().await?;
    pool.close().await;
    Ok(())
}
