//! Audits the crates that a lock file pins: `cargo run --example crate_audit [--
//! path/to/Cargo.lock]`
//!
//! Manifests come from the local cargo registry; a crate that is not there counts as unknown. Runs
//! on the server that `DATABASE_URL` names, else on a private one that ends with the program. A run
//! that an earlier process left unfinished is finished first.

use std::{collections::BTreeMap, fmt::Write, io, path::Path, path::PathBuf, time::Duration};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use pgflow::{
    dev::DevDatabase,
    inspect::{self, RunFilter},
    prelude::*,
};
use serde::{Deserialize, Serialize};

type Counts = BTreeMap<String, usize>;
type Versions = BTreeMap<String, Vec<String>>;

/// Audits the crates that a lock file pins.
struct CrateAudit;

#[flow(input = Lockfile, timeout = "10s")]
impl CrateAudit {
    /// Reads the lock file.
    #[step]
    async fn parse(input: &Lockfile) -> anyhow::Result<Vec<Package>> {
        Ok(Pinned::read(&input.path).map_err(Permanent::new)?.package)
    }

    /// Looks at one crate in the local registry.
    #[step(map = parse)]
    async fn inspect(item: Package) -> anyhow::Result<Inspection> {
        tokio::task::spawn_blocking(move || item.inspect()).await?
    }

    /// Counts the licences.
    #[step(depends_on = [inspect])]
    async fn licences(inspect: &[Inspection]) -> StepResult<Counts> {
        Ok(count(inspect.iter().map(|i| &i.licence)))
    }

    /// Finds the crates that are pinned in several versions.
    #[step(depends_on = [parse])]
    async fn duplicates(#[from(parse)] packages: Vec<Package>) -> StepResult<Versions> {
        let mut versions = Versions::new();
        for package in packages {
            versions
                .entry(package.name)
                .or_default()
                .push(package.version);
        }
        versions.retain(|_, versions| versions.len() > 1);
        Ok(versions)
    }

    /// Puts the findings into words.
    #[step(depends_on = [inspect, licences, duplicates])]
    async fn report(
        inspect: &[Inspection],
        licences: Counts,
        duplicates: Versions,
    ) -> StepResult<String> {
        let megabytes = inspect.iter().filter_map(|i| i.bytes).sum::<u64>() / 1_000_000;
        let editions = count(inspect.iter().map(|i| &i.edition));
        let packages = inspect.len();
        let mut text = format!("{packages} packages, {megabytes} MB of sources\n");
        writeln!(text, "Editions: {editions:?}\n\nLicences")?;
        for (licence, packages) in licences {
            writeln!(text, "{packages:>6}  {licence}")?;
        }
        writeln!(text, "\nPinned in several versions")?;
        for (name, versions) in duplicates {
            writeln!(text, "        {name}: {}", versions.join(", "))?;
        }
        Ok(text)
    }
}

#[derive(Serialize, Deserialize)]
struct Lockfile {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Package {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Pinned {
    package: Vec<Package>,
}

#[derive(Default, Serialize, Deserialize)]
struct Inspection {
    licence: Option<String>,
    edition: Option<String>,
    bytes: Option<u64>,
}

impl Pinned {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("{} is not a lock file of cargo", path.display()))
    }
}

impl Package {
    fn inspect(&self) -> anyhow::Result<Inspection> {
        let Some(folder) = self.unpacked() else {
            return Ok(Inspection::default());
        };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))?;
        let manifest: toml::Table = toml::from_str(&manifest)?;
        let field = |name| Some(manifest.get("package")?.get(name)?.as_str()?.to_owned());
        Ok(Inspection {
            licence: field("license"),
            edition: field("edition").or_else(|| Some("2015".to_owned())),
            bytes: Some(size(&folder)?),
        })
    }

    /// Returns the directory in which cargo unpacked the crate, if it did.
    fn unpacked(&self) -> Option<PathBuf> {
        let sources = home::cargo_home().ok()?.join("registry/src");
        let folder = format!("{}-{}", self.name, self.version);
        let registries = sources.read_dir().ok()?.flatten();
        registries
            .map(|registry| registry.path().join(&folder))
            .find(|folder| folder.join("Cargo.toml").is_file())
    }
}

fn size(path: &Path) -> io::Result<u64> {
    if path.symlink_metadata()?.is_dir() {
        return path.read_dir()?.map(|entry| size(&entry?.path())).sum();
    }
    Ok(path.symlink_metadata()?.len())
}

fn count<'a>(words: impl Iterator<Item = &'a Option<String>>) -> Counts {
    let mut counts = Counts::new();
    for word in words {
        let word = word.as_deref().unwrap_or("unknown").to_owned();
        *counts.entry(word).or_default() += 1;
    }
    counts
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let own = || concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock").into();
    let path = std::path::absolute(std::env::args_os().nth(1).unwrap_or_else(own))?;

    let database = DevDatabase::start().await?;
    let pool = database.migrated_pool().await?;
    let worker = FlowWorker::<CrateAudit>::new().start(&pool).await?;
    let client = Client::new(pool.clone());
    for run in inspect::runs(&pool, &RunFilter::unfinished("crate_audit")).await? {
        eprintln!("finishing run {}, left by an earlier process", run.run_id);
        finish(&client.run(run.run_id)).await?;
    }
    let report = finish(&client.start(&Lockfile { path }).await?).await;
    worker.stop().await?;
    println!("{}", report?);
    Ok(())
}

/// Waits for the run, with a bar that counts the inspected crates, and returns its report.
async fn finish(run: &RunHandle<CrateAudit>) -> anyhow::Result<String> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} crates inspected")?;
    let bar = ProgressBar::no_length().with_style(style);
    let mut wait = run.wait().into_future();
    loop {
        if let Ok(output) = tokio::time::timeout(Duration::from_millis(50), &mut wait).await {
            bar.finish_and_clear();
            return Ok(output?.report);
        }
        if let Some(tasks) = run.snapshot().await?.tasks(Step::Inspect) {
            bar.set_length(tasks.total);
            bar.set_position(tasks.completed);
        }
    }
}
