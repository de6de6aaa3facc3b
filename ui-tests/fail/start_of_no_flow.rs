#![allow(unused)]

use pgflow::{client::Client, prelude::*, sqlx::PgPool};
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

async fn with_a_client(client: &Client, input: Lockfile) {
    let run = client.start::<Package>(&input).await;
}

async fn many(client: &Client, inputs: Vec<Lockfile>) {
    let runs = client.start_many::<Package>(&inputs).await;
}

async fn of_the_type(pool: &PgPool, input: Lockfile) {
    let run = Package::start(pool, &input).await;
}

fn main() {}
