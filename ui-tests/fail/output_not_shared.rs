#![allow(unused)]

use std::{cell::Cell, rc::Rc};

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};
use serde::{Deserialize, Serialize};

/// Not `Sync`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Counted(Cell<u32>);

/// Neither `Send` nor `Sync`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Cached {
    #[serde(skip)]
    of: Rc<u32>,
}

pub struct CrateAudit;

#[flow(input = Lockfile, output_derive = [Clone])]
impl CrateAudit {
    #[step]
    async fn count(input: &Lockfile) -> StepResult<Counted> {
        let counted = Counted(Cell::new(1));
        std::future::ready(()).await;
        Ok(counted)
    }
    #[step(depends_on = [count])]
    async fn by_reference(count: &Counted) -> StepResult<Report> {
        std::future::ready(()).await;
        Ok(Report)
    }
    #[step(depends_on = [count])]
    async fn by_value(count: Counted) -> StepResult<Report> {
        std::future::ready(()).await;
        Ok(Report)
    }
    #[step(when_exhausted = "skip")]
    async fn list() -> StepResult<Vec<Cached>> {
        let list = vec![Cached { of: Rc::new(1) }];
        std::future::ready(()).await;
        Ok(list)
    }
    #[step(depends_on = [list])]
    async fn borrow(list: Option<&[Cached]>) -> StepResult<Report> {
        std::future::ready(()).await;
        Ok(Report)
    }
    #[step(map = list)]
    async fn each(item: &Cached, input: Lockfile) -> StepResult<(u8, Cell<u8>)> {
        std::future::ready(()).await;
        Ok((1, Cell::new(2)))
    }
    #[step(depends_on = [each])]
    async fn all(each: Vec<(u8, Cell<u8>)>) -> StepResult<Report> {
        std::future::ready(()).await;
        Ok(Report)
    }
    #[step]
    async fn leaf() -> StepResult<Cached> { unreachable!() }
}

async fn other_code(pool: &pgflow::sqlx::PgPool) {
    let _ = FlowWorker::<CrateAudit>::new().run(pool).await;
    let run = CrateAudit::start(pool, &Lockfile { plan: String::new() }).await;
}

fn main() {}
