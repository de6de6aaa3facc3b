//! Audits the crates that a lock file pins: their licences, editions and sizes, and the crates pinned in several versions.
//!
//! `cargo run --example crate_audit [-- path/to/Cargo.lock]`
//!
//! The manifests come from the local cargo registry; a crate that is not there counts as unknown. With `DATABASE_URL` set the flow runs
//! on that server, else on a private one that ends with the program. A run that an earlier process left unfinished is finished first.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use pgflow::{dev::DevDatabase, prelude::*};
use serde::{Deserialize, Serialize};

/// Audits the crates that a lock file pins.
pub struct CrateAudit;

#[flow(input = Lockfile, timeout = "30s")]
impl CrateAudit {
    /// Reads the lock file.
    #[step]
    async fn parse(input: &Lockfile) -> anyhow::Result<Vec<Package>> {
        let path = input.path.display();
        let text = tokio::fs::read_to_string(&input.path)
            .await
            .with_context(|| format!("cannot read {path}"));
        let pinned: Pinned = text
            .and_then(|t| {
                toml::from_str(&t).with_context(|| format!("{path} is not a lock file of cargo"))
            })
            .map_err(Permanent::new)?;
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
