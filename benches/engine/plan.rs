//! The sequence of all measurements, repeated.

use crate::{
    Result,
    floor::{Floor, floor},
    history,
    idle::idle,
    latency::latency,
    options::Options,
    report::Record,
    scenario::{Scenario, Shape, with_flow},
    server::{Place, Server},
    start::{self, start},
    starvation::starvation,
    throughput::{TASKS, runs, throughput},
    variant::{Mode, Variant},
};

/// A database for each history, filled.
pub(crate) async fn places(server: &Server, options: &Options) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for history in options.histories() {
        let place = server.place(options, history).await?;
        let at = std::time::Instant::now();
        history::fill(&place, options).await?;
        if history > 0 {
            eprintln!("{history} ended runs were written in {:.0?}", at.elapsed());
        }
        places.push(place);
    }
    Ok(places)
}

/// Measures everything as often as was asked for; what is compared follows each other, and each
/// second time in the opposite order.
pub(crate) async fn measure(
    places: &mut [Place],
    options: &Options,
    records: &mut Vec<Record>,
) -> Result<()> {
    for repetition in 1..=options.repeat {
        let floor = if options
            .scenarios()
            .iter()
            .any(|s| s.throughput(0).is_some())
        {
            let floor = floor(&places[0], options, messages(options).await).await?;
            keep(records, Record::floor(repetition, &floor));
            Some(floor)
        } else {
            None
        };
        for &scenario in options.scenarios() {
            let mut variants = variants(scenario, options);
            if repetition % 2 == 0 {
                variants.reverse();
            }
            for variant in variants {
                let place = places
                    .iter_mut()
                    .find(|place| place.history == variant.history)
                    .ok_or("no database has that history")?;
                place.set_events(variant.events).await?;
                let pass = Pass {
                    options,
                    scenario,
                    variant,
                    repetition,
                };
                for record in pass.measure(place, floor.as_ref()).await? {
                    keep(records, record);
                }
            }
        }
    }
    Ok(())
}

fn keep(records: &mut Vec<Record>, record: Record) {
    let variant = record.variant.map(|variant| variant.to_string());
    let name = [
        Some(record.scenario.clone()),
        Some(record.what.clone()),
        variant,
    ];
    let name: Vec<String> = name
        .into_iter()
        .flatten()
        .filter(|n| !n.is_empty())
        .collect();
    let main = record.figures.iter().find(|figure| figure.main);
    let main = main.and_then(|figure| Some((figure.value?, &figure.name)));
    eprintln!(
        "{}: {}: {}",
        record.repetition,
        name.join(", "),
        main.map_or("-".to_owned(), |(value, name)| format!("{value:.3} {name}"))
    );
    records.push(record);
}

/// As many messages as the largest throughput scenario has tasks.
async fn messages(options: &Options) -> usize {
    let mut most = 0;
    for scenario in options.scenarios() {
        if let Some((shape, elements)) = scenario.throughput(options.elements) {
            let tasks = with_flow!(shape, Mode::Flow, tasks(options, elements));
            most = most.max(tasks);
        }
    }
    if most == 0 { TASKS } else { most }
}

async fn tasks<F: crate::flows::Measured>(options: &Options, elements: usize) -> usize {
    runs::<F>(options, elements) * F::tasks(elements)
}

/// The conditions that make a difference to a scenario.
fn variants(scenario: Scenario, options: &Options) -> Vec<Variant> {
    let mut variants = options.variants();
    match scenario {
        // It is about step workers, and nothing happens that events could tell.
        Scenario::Idle => {
            let events = variants[0].events;
            for variant in &mut variants {
                (variant.mode, variant.events) = (Mode::Step, events);
            }
            variants.dedup();
        }
        // It compares the modes itself.
        Scenario::Starvation => variants.truncate(1),
        _ => {}
    }
    variants
}

struct Pass<'a> {
    options: &'a Options,
    scenario: Scenario,
    variant: Variant,
    repetition: u32,
}

impl Pass<'_> {
    async fn measure(&self, place: &mut Place, floor: Option<&Floor>) -> Result<Vec<Record>> {
        let (options, variant, repetition) = (self.options, self.variant, self.repetition);
        let mode = variant.mode;
        if let (Some((shape, elements)), Some(floor)) =
            (self.scenario.throughput(options.elements), floor)
        {
            let measured = with_flow!(shape, mode, throughput(place, options, elements))?;
            let name = self.scenario.name();
            let workers = options.workers;
            return Ok(vec![Record::throughput(
                name, variant, repetition, workers, measured, floor,
            )]);
        }
        match self.scenario {
            Scenario::Latency => {
                let events = variant.events;
                let measured =
                    with_flow!(Shape::Chain3, mode, latency(place, options, mode, events))?;
                Ok(vec![Record::latency(variant, repetition, measured)])
            }
            Scenario::Idle => {
                let load = idle(place, options).await?;
                Ok(vec![Record::idle(variant, repetition, load)])
            }
            Scenario::Starvation => {
                let measured = starvation(place, options).await?;
                Ok(Record::starvation(repetition, &measured))
            }
            Scenario::Start => self.starts(place).await,
            _ => Err("a throughput scenario needs the floor beside it".into()),
        }
    }

    async fn starts(&self, place: &mut Place) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let flows = [
            (Shape::One, "one"),
            (Shape::Chain3, "chain3"),
            (Shape::Ten, "ten"),
        ];
        for (shape, name) in flows {
            for connections in start::CONNECTIONS {
                for &way in start::Way::ALL {
                    let mode = self.variant.mode;
                    let starts =
                        with_flow!(shape, mode, start(place, self.options, connections, way))?;
                    let what = format!("{name}, {} by {connections}", way.name());
                    records.push(Record::start(what, self.variant, self.repetition, starts));
                }
            }
        }
        Ok(records)
    }
}
