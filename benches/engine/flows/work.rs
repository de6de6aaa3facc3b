//! The handlers of all measured flows, and the time at which they run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pgflow::StepResult;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::sync::{Notify, SetOnce};

/// A string: the input of a run, an element of a list, the output of a step.
#[derive(Debug, Clone)]
pub(crate) struct Data(Arc<str>);

/// The source of a map.
pub(crate) type List = Vec<Data>;

impl Data {
    /// Letters and digits that compress badly, the same at each run.
    pub(crate) fn of_bytes(bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(1);
        let text: String = (0..bytes).map(|_| random.alphanumeric()).collect();
        Self(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

/// The input of a run, from what each element is to be and how many there are.
pub(crate) trait RunInput {
    fn make(data: &Data, elements: usize) -> Self;
}

impl RunInput for Data {
    fn make(data: &Data, _elements: usize) -> Self {
        data.clone()
    }
}

impl RunInput for List {
    fn make(data: &Data, elements: usize) -> Self {
        vec![data.clone(); elements]
    }
}

/// The state that the handlers of all workers share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Work(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    output: Data,
    /// Handlers wait for it, so that workers can start before the clock does.
    gate: SetOnce<()>,
    expected: usize,
    done: AtomicUsize,
    all_done: Notify,
}

impl Work {
    /// So many tasks, none of which ends before [`open`](Self::open).
    pub(crate) fn new(output: Data, expected: usize) -> Self {
        Self(Arc::new(Shared {
            output,
            gate: SetOnce::new(),
            expected,
            done: AtomicUsize::new(0),
            all_done: Notify::new(),
        }))
    }

    /// Lets the handlers run.
    pub(crate) fn open(&self) {
        // Twice is as good as once.
        let _ = self.0.gate.set(());
    }

    /// Executes a handler.
    pub(crate) async fn task(&self) -> StepResult<Data> {
        self.0.gate.wait().await;
        if self.0.done.fetch_add(1, Ordering::Relaxed) + 1 >= self.0.expected {
            self.0.all_done.notify_one();
        }
        Ok(self.0.output.clone())
    }

    /// Returns the number of handlers that have run.
    pub(crate) fn done(&self) -> usize {
        self.0.done.load(Ordering::Relaxed)
    }

    /// Returns when as many handlers have run as there are tasks; their results may still be on the
    /// way.
    pub(crate) async fn all_done(&self) {
        self.0.all_done.notified().await;
    }
}
