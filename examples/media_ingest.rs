//! Takes in the files of a folder: `cargo run --example media_ingest [-- path/to/folder]`
//!
//! Each step has a queue and workers of its own. Hashing reads every byte, so two files at a time
//! are enough for the disk; telling what a file is takes its first bytes, and need not wait behind
//! that. Runs on the server that `DATABASE_URL` names, else on a private one that ends with the
//! program.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use pgflow::{dev::DevDatabase, prelude::*};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Takes in the files of a folder.
struct MediaIngest;

#[flow(input = Folder, with_step_queues, timeout = "30s")]
impl MediaIngest {
    /// Lists the files.
    #[step]
    async fn list(input: &Folder) -> anyhow::Result<Vec<PathBuf>> {
        let folder = input.path.clone();
        tokio::task::spawn_blocking(move || files(&folder)).await?
    }

    /// Reads every byte of a file: slow.
    #[step(map = list, timeout = "10m")]
    async fn hash(item: PathBuf) -> anyhow::Result<Hashed> {
        tokio::task::spawn_blocking(move || Hashed::of(&item)).await?
    }

    /// Reads the first bytes of a file: fast.
    #[step(map = list)]
    async fn sniff(item: PathBuf) -> anyhow::Result<Sniffed> {
        tokio::task::spawn_blocking(move || Sniffed::of(item)).await?
    }

    /// Counts the words of a text, measures an image.
    #[step(map = sniff)]
    async fn describe(item: Sniffed) -> anyhow::Result<Described> {
        tokio::task::spawn_blocking(move || Described::of(item)).await?
    }

    /// Puts the findings into words.
    #[step(depends_on = [hash, describe])]
    async fn summary(hash: &[Hashed], describe: &[Described]) -> StepResult<String> {
        let mut text = format!("{} files, {} bytes\n", hash.len(), sum(hash, |f| f.bytes));
        let mut kinds: BTreeMap<&str, Vec<&Described>> = BTreeMap::new();
        for file in describe {
            kinds.entry(&file.kind).or_default().push(file);
        }
        for (kind, files) in kinds {
            let words = sum(&files, |file| file.words);
            let pixels = sum(&files, |file| file.pixels);
            write!(text, "{:>7}  {kind}", files.len())?;
            match (words, pixels) {
                (0, 0) => writeln!(text)?,
                (words, 0) => writeln!(text, ", {words} words")?,
                (_, pixels) => writeln!(text, ", {pixels} pixels")?,
            }
        }
        let mut seen = HashSet::new();
        let copies: Vec<_> = hash
            .iter()
            .filter(|file| !seen.insert(&file.sha256))
            .collect();
        let bytes = sum(&copies, |file| file.bytes);
        writeln!(
            text,
            "{:>7}  of them are copies, {bytes} bytes",
            copies.len()
        )?;
        Ok(text)
    }
}

#[derive(Serialize, Deserialize)]
struct Folder {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Hashed {
    bytes: u64,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Sniffed {
    path: PathBuf,
    kind: String,
}

#[derive(Serialize, Deserialize)]
struct Described {
    kind: String,
    words: u64,
    pixels: u64,
}

/// The files below a folder, hidden ones and build results left out.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_wanted = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(name.starts_with('.') || name == "target")
    };
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(is_wanted)
    {
        // A folder that is not there will not be there at the next attempt.
        let entry = entry.map_err(Permanent::new)?;
        // Paths travel as JSON.
        if entry.file_type().is_file() && entry.path().to_str().is_some() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

impl Hashed {
    fn of(path: &Path) -> anyhow::Result<Self> {
        let (mut file, mut hasher) = (BufReader::new(open(path)?), Sha256::new());
        let mut bytes = 0;
        loop {
            let part = file.fill_buf()?;
            if part.is_empty() {
                break;
            }
            hasher.update(part);
            let read = part.len();
            bytes += read as u64;
            file.consume(read);
        }
        let mut sha256 = String::new();
        for byte in hasher.finalize() {
            write!(sha256, "{byte:02x}")?;
        }
        Ok(Self { bytes, sha256 })
    }
}

impl Sniffed {
    fn of(path: PathBuf) -> anyhow::Result<Self> {
        let mut start = Vec::new();
        open(&path)?.take(8192).read_to_end(&mut start)?;
        let kind = match infer::get(&start) {
            Some(kind) => kind.mime_type(),
            // The last character may be cut.
            None if String::from_utf8_lossy(&start).matches('\u{fffd}').count() <= 1 => "text",
            None => "unknown",
        };
        Ok(Self {
            path,
            kind: kind.to_owned(),
        })
    }
}

impl Described {
    fn of(file: Sniffed) -> anyhow::Result<Self> {
        let (mut words, mut pixels) = (0, 0);
        if file.kind.starts_with("text") {
            let text = std::fs::read(&file.path)?;
            words = String::from_utf8_lossy(&text).split_whitespace().count() as u64;
        } else if file.kind.starts_with("image/") {
            // An image of a kind that can't be measured is no reason to fail.
            pixels =
                imagesize::size(&file.path).map_or(0, |size| (size.width * size.height) as u64);
        }
        Ok(Self {
            kind: file.kind,
            words,
            pixels,
        })
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

fn sum<T>(items: &[T], value: impl Fn(&T) -> u64) -> u64 {
    items.iter().map(value).sum()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let own = || env!("CARGO_MANIFEST_DIR").into();
    let path = std::path::absolute(std::env::args_os().nth(1).unwrap_or_else(own))?;

    let database = DevDatabase::start().await?;
    let pool = database.migrated_pool().await?;
    let workers = StepWorker::<MediaIngest>::all()
        .step(Step::Hash, |worker| worker.concurrency(2))
        .step(Step::Sniff, |worker| worker.concurrency(32))
        .start(&pool)
        .await?;
    let run = Client::new(pool)
        .start::<MediaIngest>(&Folder { path })
        .await?;
    let summary = finish(&run).await;
    workers.stop().await?;
    println!("{}", summary?);
    Ok(())
}

/// Waits for the run, with a bar for each step that goes through the files, and returns its
/// summary.
async fn finish(run: &RunHandle<MediaIngest>) -> anyhow::Result<String> {
    let style = ProgressStyle::with_template("{prefix:>9} {bar:40} {pos}/{len}{msg}")?;
    let all = MultiProgress::new();
    let bars = [Step::Hash, Step::Sniff, Step::Describe].map(|step| {
        let bar = ProgressBar::no_length()
            .with_style(style.clone())
            .with_prefix(step.slug());
        (step, all.add(bar))
    });
    let mut wait = run.wait().into_future();
    loop {
        let ended = tokio::time::timeout(Duration::from_millis(50), &mut wait).await;
        let snapshot = run.snapshot().await?;
        for (step, bar) in &bars {
            if let Some(tasks) = snapshot.tasks(*step) {
                bar.set_length(tasks.total);
                bar.set_position(tasks.completed);
            }
            let times = snapshot
                .step(*step)
                .map(|step| (step.started_at, step.completed_at));
            if let Some((Some(from), Some(to))) = times {
                bar.finish_with_message(format!(" in {} ms", (to - from).num_milliseconds()));
            }
        }
        if let Ok(output) = ended {
            return Ok(output?.summary);
        }
    }
}
