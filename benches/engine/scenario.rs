//! The scenarios that can be measured.

use clap::ValueEnum;
use serde::Serialize;

/// The scenarios that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scenario {
    /// A flow of one step.
    One,
    /// Three steps, one after the other.
    Chain3,
    /// Two steps side by side, between a first and a last one.
    Diamond,
    /// Fifty steps side by side.
    Fan50,
    /// A map over as many elements as `--elements` says.
    Map,
    /// A map over 1,000 elements.
    Map1k,
    /// A map over 10,000 elements.
    Map10k,
    /// A map over 20,000 elements.
    Map20k,
    /// Twenty layers of three steps, each of which depends on the three of the layer before.
    #[value(name = "layered20x3")]
    #[serde(rename = "layered20x3")]
    Layered,
    /// The duration of a chain of three steps on an idle system, with the worker in its own
    /// process.
    Latency,
    /// The cost of thirty idle step workers in one process.
    Idle,
    /// The effect of a slow step on a fast one, with one queue for both and with a queue for each.
    Starvation,
    /// The cost of starting a run, over one connection and over ten.
    Start,
}

/// A flow to measure, by its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    Chain3,
    Diamond,
    Fan50,
    Map,
    Layered,
    Ten,
}

impl Scenario {
    /// The scenarios that are measured by default.
    pub(crate) const ALL: &[Self] = &[
        Self::One,
        Self::Chain3,
        Self::Diamond,
        Self::Fan50,
        Self::Map1k,
        Self::Map10k,
        Self::Map20k,
        Self::Layered,
        Self::Latency,
        Self::Idle,
        Self::Starvation,
        Self::Start,
    ];

    /// The flow whose throughput is measured, and how many elements its list has: `elements` when
    /// that is to be chosen.
    pub(crate) fn throughput(self, elements: usize) -> Option<(Shape, usize)> {
        match self {
            Self::One => Some((Shape::One, 1)),
            Self::Chain3 => Some((Shape::Chain3, 1)),
            Self::Diamond => Some((Shape::Diamond, 1)),
            Self::Fan50 => Some((Shape::Fan50, 1)),
            Self::Map => Some((Shape::Map, elements)),
            Self::Map1k => Some((Shape::Map, 1_000)),
            Self::Map10k => Some((Shape::Map, 10_000)),
            Self::Map20k => Some((Shape::Map, 20_000)),
            Self::Layered => Some((Shape::Layered, 1)),
            Self::Latency | Self::Idle | Self::Starvation | Self::Start => None,
        }
    }

    /// The flows whose ended runs make a history for this scenario: those that are measured, unless
    /// they have so many steps that a history of them would be one of few runs.
    pub(crate) fn history(self) -> &'static [Shape] {
        match self {
            Self::One => &[Shape::One],
            Self::Diamond => &[Shape::Diamond],
            Self::Map | Self::Map1k | Self::Map10k | Self::Map20k => &[Shape::Map],
            Self::Start => &[Shape::One, Shape::Chain3],
            Self::Chain3
            | Self::Fan50
            | Self::Layered
            | Self::Latency
            | Self::Idle
            | Self::Starvation => &[Shape::Chain3],
        }
    }

    pub(crate) fn name(self) -> String {
        let value = self
            .to_possible_value()
            .expect("no scenario is hidden from the command line");
        value.get_name().to_owned()
    }
}

/// Calls a generic function with the flow of a shape and a mode.
macro_rules! with_flow {
    ($shape:expr, $mode:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        use $crate::{flows, scenario::Shape, variant::Mode};
        match ($shape, $mode) {
            (Shape::One, Mode::Flow) => $function::<flows::one::flow::One>($($argument),*).await,
            (Shape::One, Mode::Step) => $function::<flows::one::step::One>($($argument),*).await,
            (Shape::Chain3, Mode::Flow) => $function::<flows::chain3::flow::Chain3>($($argument),*).await,
            (Shape::Chain3, Mode::Step) => $function::<flows::chain3::step::Chain3>($($argument),*).await,
            (Shape::Diamond, Mode::Flow) => $function::<flows::diamond::flow::Diamond>($($argument),*).await,
            (Shape::Diamond, Mode::Step) => $function::<flows::diamond::step::Diamond>($($argument),*).await,
            (Shape::Fan50, Mode::Flow) => $function::<flows::fan50::flow::Fan50>($($argument),*).await,
            (Shape::Fan50, Mode::Step) => $function::<flows::fan50::step::Fan50>($($argument),*).await,
            (Shape::Map, Mode::Flow) => $function::<flows::map::flow::Map>($($argument),*).await,
            (Shape::Map, Mode::Step) => $function::<flows::map::step::Map>($($argument),*).await,
            (Shape::Layered, Mode::Flow) => $function::<flows::layered::flow::Layered>($($argument),*).await,
            (Shape::Layered, Mode::Step) => $function::<flows::layered::step::Layered>($($argument),*).await,
            (Shape::Ten, Mode::Flow) => $function::<flows::ten::flow::Ten>($($argument),*).await,
            (Shape::Ten, Mode::Step) => $function::<flows::ten::step::Ten>($($argument),*).await,
        }
    }};
}

pub(crate) use with_flow;
