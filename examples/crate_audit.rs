//! Audits the crates that a lock file pins: their licences, editions and sizes, and the crates pinned in several versions.
//!
//! `cargo run --example crate_audit [-- path/to/Cargo.lock]`
//!
//! The manifests come from the local cargo registry; a crate that is not there counts as unknown. With `DATABASE_URL` set the flow runs
//! on that server, else on a private one that ends with the program. A run that an earlier process left unfinished is finished first.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use pgflow::{
    dev::DevDatabase,
    inspect::{self, RunFilter},
    prelude::*,
    sqlx::PgPool,
};
use serde::{Deserialize, Serialize};

/// Audits the crates that a lock file pins.
pub struct CrateAudit;

#[flow(input = Lockfile, timeout = "30s")]
impl CrateAudit {
    /// Reads the lock file.
    #[step]
    async fn parse(input: &Lockfile) -> anyhow::Result<Vec<Package>> {
        let pinned = Pinned::read(&input.path).await.map_err(Permanent::new)?;
        Ok(pinned.package)
    }

    /// Looks at one crate, in the local registry.
    #[step(map = parse)]
    async fn inspect(item: Package) -> anyhow::Result<Inspection> {
        tokio::task::spawn_blocking(move || Inspection::of(&item)).await?
    }

    /// Counts the licences.
    #[step(depends_on = [inspect])]
    async fn licences(inspect: &[Inspection]) -> StepResult<BTreeMap<String, usize>> {
        Ok(count(
            inspect
                .iter()
                .map(|i| i.licence.as_deref().unwrap_or("unknown")),
        ))
    }

    /// Finds the crates that are pinned in several versions.
    #[step(depends_on = [parse])]
    async fn duplicates(
        #[from(parse)] packages: &[Package],
    ) -> StepResult<BTreeMap<String, BTreeSet<String>>> {
        let mut versions = BTreeMap::<_, BTreeSet<_>>::new();
        for package in packages {
            versions
                .entry(package.name.clone())
                .or_default()
                .insert(package.version.clone());
        }
        versions.retain(|_, versions| versions.len() > 1);
        Ok(versions)
    }

    /// Puts the findings together.
    #[step(depends_on = [inspect, licences, duplicates])]
    async fn report(
        inspect: &[Inspection],
        licences: BTreeMap<String, usize>,
        duplicates: BTreeMap<String, BTreeSet<String>>,
    ) -> StepResult<Report> {
        Ok(Report {
            packages: inspect.len(),
            bytes: inspect.iter().filter_map(|i| i.bytes).sum(),
            editions: count(
                inspect
                    .iter()
                    .map(|i| i.edition.as_deref().unwrap_or("unknown")),
            ),
            licences,
            duplicates,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub struct Lockfile {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
pub struct Package {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Pinned {
    package: Vec<Package>,
}

#[derive(Default, Serialize, Deserialize)]
pub struct Inspection {
    licence: Option<String>,
    edition: Option<String>,
    bytes: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub struct Report {
    packages: usize,
    bytes: u64,
    editions: BTreeMap<String, usize>,
    licences: BTreeMap<String, usize>,
    duplicates: BTreeMap<String, BTreeSet<String>>,
}

impl Pinned {
    async fn read(path: &Path) -> anyhow::Result<Self> {
        let text = tokio::fs::read_to_string(path)
            .await
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("{} is not a lock file of cargo", path.display()))
    }
}

impl Inspection {
    fn of(package: &Package) -> anyhow::Result<Self> {
        let Some(folder) = package.unpacked() else {
            return Ok(Self::default());
        };
        let manifest: toml::Table =
            toml::from_str(&std::fs::read_to_string(folder.join("Cargo.toml"))?)?;
        let field = |name| Some(manifest.get("package")?.get(name)?.as_str()?.to_owned());
        Ok(Self {
            licence: field("license"),
            edition: field("edition").or_else(|| Some("2015".into())),
            bytes: Some(size(&folder)?),
        })
    }
}

impl Package {
    /// Where cargo unpacked the crate, if it did.
    fn unpacked(&self) -> Option<PathBuf> {
        let sources = home::cargo_home()
            .ok()?
            .join("registry/src")
            .read_dir()
            .ok()?;
        let name = format!("{}-{}", self.name, self.version);
        sources
            .flatten()
            .map(|registry| registry.path().join(&name))
            .find(|folder| folder.join("Cargo.toml").is_file())
    }
}

fn size(path: &Path) -> std::io::Result<u64> {
    let meta = path.symlink_metadata()?;
    if !meta.is_dir() {
        return Ok(meta.len());
    }
    path.read_dir()?.map(|entry| size(&entry?.path())).sum()
}

fn count<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock");
    let path = std::env::args_os().nth(1).unwrap_or_else(|| default.into());
    let input = Lockfile {
        path: std::path::absolute(path)?,
    };

    let database = DevDatabase::start().await?;
    let pool = database.migrated_pool().await?;
    let worker = FlowWorker::<CrateAudit>::new().start(&pool).await?;
    let run = resume_or_start(&pool, &input).await?;
    let result = finish(&run).await;
    worker.stop().await?;
    println!("{}", result?);
    Ok(())
}

/// The run over this file that an earlier process left unfinished; else a new one.
async fn resume_or_start(pool: &PgPool, input: &Lockfile) -> anyhow::Result<RunHandle<CrateAudit>> {
    let client = Client::new(pool.clone());
    let filter = RunFilter {
        status: Some("started".into()),
        flow_slug: Some("crate_audit".into()),
        limit: 100,
    };
    for unfinished in inspect::runs(pool, &filter).await? {
        let run = inspect::run(&mut *pool.acquire().await?, unfinished.run_id).await?;
        if run.is_some_and(|run| run.input == serde_json::json!(input)) {
            eprintln!(
                "finishing run {}; tasks of a process that died come back after their timeout",
                unfinished.run_id
            );
            return Ok(client.run(unfinished.run_id));
        }
    }
    Ok(client.start(input).await?)
}

/// Waits for the run, with a bar that counts the inspected crates.
async fn finish(run: &RunHandle<CrateAudit>) -> anyhow::Result<Report> {
    let bar = ProgressBar::no_length().with_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} crates inspected",
    )?);
    let watch = async {
        loop {
            if let Some((total, left)) = run
                .snapshot()
                .await?
                .step(Step::Inspect)
                .and_then(|s| s.initial_tasks.zip(s.remaining_tasks))
            {
                bar.set_length(total.try_into()?);
                bar.set_position((total - left).try_into()?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let output = tokio::select! {
        output = run.wait() => output?,
        failed = watch => failed?,
    };
    bar.finish_and_clear();
    Ok(output.report)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes / 1_000_000;
        writeln!(
            f,
            "{} packages, {megabytes} MB of sources in the local registry\n",
            self.packages
        )?;
        for (title, counts) in [("Licences", &self.licences), ("Editions", &self.editions)] {
            writeln!(f, "{title}")?;
            let mut counts: Vec<_> = counts.iter().collect();
            counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
            counts
                .iter()
                .try_for_each(|(word, n)| writeln!(f, "{n:>6}  {word}"))?;
            writeln!(f)?;
        }
        writeln!(f, "Pinned in several versions")?;
        for (name, versions) in &self.duplicates {
            writeln!(
                f,
                "        {name}: {}",
                versions
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", ")
            )?;
        }
        Ok(())
    }
}
