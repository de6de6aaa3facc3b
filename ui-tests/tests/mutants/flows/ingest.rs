use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thumbnail {
    pub width: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    pub files: usize,
}

/// Shared by value too.
#[derive(Debug, Clone)]
pub struct Store;

/// Reads a folder of files.
pub struct MediaIngest;

#[flow(
    input = Vec<String>,
    state = Store,
    timeout = "5m",
)]
impl MediaIngest {
    #[step(
        map = input,
    )]
    async fn fetch(
        item: &str,
        state: Store,
    ) -> StepResult<Vec<u8>> {
        todo!()
    }

    fn width(bytes: &[u8]) -> usize {
        bytes.len()
    }

    #[step(
        map = fetch,
        when_exhausted = "skip-cascade",
    )]
    async fn shrink(
        item: Vec<u8>,
        state: &Store,
    ) -> anyhow::Result<Thumbnail> {
        todo!()
    }

    const PAIR: (u8, u8) = (1, 2);

    #[step(
        map = input,
        when_exhausted = "skip",
    )]
    async fn title(
        item: String,
        ctx: &StepContext,
    ) -> StepResult<String> {
        todo!()
    }

    #[step]
    async fn folder(
        input: &[String],
    ) -> StepResult<String> {
        todo!()
    }

    #[step(
        depends_on = [folder, shrink, title],
    )]
    async fn summary(
        folder: &str,
        shrink: &[Thumbnail],
        title: Option<&[String]>,
        mut input: Vec<String>,
    ) -> Result<Summary, String> {
        todo!()
    }
}
