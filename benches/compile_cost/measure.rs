//! Compiles the crates and takes the time.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use crate::{
    Result,
    source::{Variant, source},
};

/// Time of processors, which other programs on the machine hardly change; where there is no
/// `/proc`, that of the clock.
pub(crate) const UNIT: &str = if cfg!(target_os = "linux") {
    "seconds of processor time"
} else {
    "seconds by the clock"
};

/// The crates, beside the build directory of this workspace, so that they find the dependencies
/// built.
pub(crate) struct Workspace {
    directory: PathBuf,
    target: PathBuf,
}

impl Workspace {
    pub(crate) fn create(steps: usize) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
        let directory = target.join("compile_cost");
        fs::create_dir_all(&directory)?;
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
        fs::write(directory.join("Cargo.toml"), manifest(root))?;
        for variant in Variant::ALL {
            let package = directory.join(variant.name());
            fs::create_dir_all(package.join("src"))?;
            let manifest = format!(
                "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\npgflow.workspace = true\n\
                 serde.workspace = true\nserde_json.workspace = true\n",
                variant.name()
            );
            fs::write(package.join("Cargo.toml"), manifest)?;
            fs::write(package.join("src/lib.rs"), source(variant, steps))?;
        }
        Ok(Self { directory, target })
    }

    /// The median for each variant. They take turns, so that a change of the machine's mood hits
    /// all.
    pub(crate) fn medians(&self, command: &str, runs: usize) -> Result<[f64; 4]> {
        // Dependencies first, which are not measured.
        for variant in Variant::ALL {
            self.run(command, variant)?;
        }
        let mut times = Variant::ALL.map(|_| Vec::new());
        for _ in 0..runs.max(1) {
            for (variant, times) in Variant::ALL.into_iter().zip(&mut times) {
                // Marks the crate as changed.
                let file = self.directory.join(variant.name()).join("src/lib.rs");
                fs::write(&file, fs::read(&file)?)?;
                times.push(self.run(command, variant)?);
            }
        }
        Ok(times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        }))
    }

    fn run(&self, command: &str, variant: Variant) -> Result<f64> {
        let clock = Clock::start()?;
        let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(&self.directory)
            .args([command, "--quiet", "--offline", "-p", variant.name()])
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_TARGET_DIR", &self.target)
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo {command} -p {} failed:\n{errors}", variant.name()).into());
        }
        clock.seconds()
    }
}

fn manifest(root: &Path) -> String {
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"plain\", \"called\", \"by_hand\", \"flow\"]\n\n[workspace.dependencies]\n\
         pgflow = {{ path = {:?}, default-features = false }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\n\
         serde_json = {{ version = \"1\", features = [\"raw_value\"] }}\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n",
        root.display().to_string()
    )
}

struct Clock {
    started: Instant,
    children: Option<f64>,
}

impl Clock {
    fn start() -> Result<Self> {
        Ok(Self {
            started: Instant::now(),
            children: time_of_children()?,
        })
    }

    fn seconds(&self) -> Result<f64> {
        let used = time_of_children()?.zip(self.children);
        Ok(used.map_or_else(
            || self.started.elapsed().as_secs_f64(),
            |(now, before)| now - before,
        ))
    }
}

/// The processor time of all child processes that have ended, in seconds.
fn time_of_children() -> Result<Option<f64>> {
    /// Linux counts in hundredths of a second here, whatever its own clock does.
    const TICKS: f64 = 100.0;
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the process, in parentheses, may hold spaces.
    let (_, fields) = stat
        .rsplit_once(") ")
        .ok_or("/proc/self/stat has another form")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    // `cutime` and `cstime`, the fields 16 and 17, of which the first two stand before the
    // parenthesis.
    let ticks: f64 = fields[13].parse::<f64>()? + fields[14].parse::<f64>()?;
    Ok(Some(ticks / TICKS))
}
