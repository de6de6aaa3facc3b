use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Address {
    pub town: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Letter {
    pub pages: u8,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stamp(pub u32);

/// Writes a letter to each address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letters;

#[flow(
    input = Address,
    crate = ::pgflow,
)]
impl Letters {
    #[step]
    async fn find(
        _input: Address,
    ) -> StepResult<Vec<(u8, String)>> {
        todo!()
    }

    #[step(
        map = find,
        base_delay = "1m",
        timeout = "10s",
    )]
    async fn write(
        #[from(item)]
        (number, name): (u8, String),
        input: &Address,
    ) -> StepResult<Letter> {
        todo!()
    }

    #[step(
        depends_on = [find],
        if = { find: [[1, "Ada"]] },
        when_unmet = "fail",
    )]
    async fn r#loop(
        find: &Vec<(u8, String)>,
    ) -> StepResult<Stamp> {
        todo!()
    }

    #[step(
        depends_on = [write, r#loop],
        if_not = { write: [{ pages: 0 }] },
    )]
    async fn send(
        mut write: Vec<Letter>,
        r#loop: &Stamp,
    ) -> StepResult<Option<u32>> {
        todo!()
    }

    #[step(
        depends_on = [send, find],
        slug = "lastOne",
        start_delay = "1d",
    )]
    async fn last(
        send: Option<Option<u32>>,
    ) -> anyhow::Result<String> {
        todo!()
    }
}
