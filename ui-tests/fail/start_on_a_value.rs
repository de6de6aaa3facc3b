#![allow(unused)]

use pgflow::prelude::*;
use pgflow::sqlx::{PgConnection, PgPool, Postgres, Transaction};
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

async fn of_a_pool(pool: PgPool, input: Lockfile) {
    let _ = CrateAudit::start(pool, &input).await;
}

async fn of_many(pool: PgPool, inputs: Vec<Lockfile>) {
    let _ = CrateAudit::start_many(pool, &inputs).await;
}

async fn of_a_transaction(mut transaction: Transaction<'_, Postgres>, input: Lockfile) {
    let _ = CrateAudit::start(&mut transaction, &input).await;
}

async fn of_an_input(pool: &PgPool, input: Lockfile) {
    let _ = CrateAudit::start(pool, input).await;
}

fn main() {}
