//! Compiles many texts at once, each a module of its own, and gives every error to its text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cargo_metadata::{
    Message,
    diagnostic::{Diagnostic, DiagnosticLevel, DiagnosticSpan},
};

/// Texts of one crate: few enough that each core has a crate, enough that loading the libraries
/// costs little.
const CRATE: usize = 40;

const MANIFEST: &str = r#"
[package]
name = "mutants"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
pgflow = { path = "ROOT", default-features = false }
anyhow = "1"
serde = { version = "1", features = ["derive"] }
# Nobody uses it: with it, libraries have the same features as for the other tests, and are built once.
cargo_metadata = "0.23"
"#;

/// The errors of each text that has some.
pub type Errors = BTreeMap<usize, Vec<Diagnostic>>;

/// A package in the target directory.
pub struct Lab {
    folder: PathBuf,
}

impl Lab {
    pub fn new() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the workspace");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
        fs::create_dir_all(&folder)?;
        let manifest = MANIFEST.replace("ROOT", &root.display().to_string());
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(Self { folder })
    }

    /// All errors of each text.
    ///
    /// rustc goes on behind errors of syntax, names and types, and reports those of every module.
    /// It may not get to the last of its checks, so the texts that have errors are taken out, until
    /// nothing is wrong.
    pub fn errors(&self, texts: &[String]) -> io::Result<Errors> {
        let mut pending: BTreeSet<usize> = (0..texts.len()).collect();
        let mut found = Errors::new();
        loop {
            let round = self.check(texts, &pending)?;
            if round.is_empty() {
                return Ok(found);
            }
            for (index, errors) in round {
                pending.remove(&index);
                found.insert(index, errors);
            }
        }
    }

    fn check(&self, texts: &[String], of: &BTreeSet<usize>) -> io::Result<Errors> {
        let bins = self.folder.join("src/bin");
        if bins.exists() {
            fs::remove_dir_all(&bins)?;
        }
        let indexes: Vec<usize> = of.iter().copied().collect();
        // Neighbours are alike; spread, they take the same time everywhere.
        let crates = indexes.len().div_ceil(CRATE);
        for number in 0..crates {
            let folder = bins.join(format!("crate_{number}"));
            fs::create_dir_all(&folder)?;
            let mut main = "#![allow(warnings)]\n".to_owned();
            for index in indexes.iter().skip(number).step_by(crates) {
                main += &format!("mod m{index};\n");
                fs::write(folder.join(format!("m{index}.rs")), &texts[*index])?;
            }
            fs::write(folder.join("main.rs"), main + "fn main() {}\n")?;
        }
        self.run_cargo()
    }

    fn run_cargo(&self) -> io::Result<Errors> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .expect("target");
        let log = self.folder.join("stderr");
        // The flags and the folder of trybuild: its libraries are built once for both.
        let flags = r#"["--cfg","trybuild","--verbose","-A","dead_code"]"#;
        let mut cargo = Command::new(env!("CARGO"))
            .args([
                "check",
                "--bins",
                "--keep-going",
                "--offline",
                "--quiet",
                "--message-format=json",
            ])
            .arg(format!("--config=build.rustflags={flags}"))
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", target.join("tests/trybuild"))
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("RUSTFLAGS")
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()?;
        let output = BufReader::new(cargo.stdout.take().expect("it is piped"));
        let mut errors = Errors::new();
        let mut has_failed = false;
        for message in Message::parse_stream(output) {
            let Message::CompilerMessage(message) = message? else {
                continue;
            };
            let diagnostic = message.message;
            has_failed = true;
            match diagnostic.level {
                DiagnosticLevel::Error | DiagnosticLevel::Ice => {}
                _ => continue,
            }
            match module(&diagnostic) {
                Some(index) => errors.entry(index).or_default().push(diagnostic),
                // The sum at the end.
                None if diagnostic.spans.is_empty() => {}
                None => panic!("an error that is of no mutant: {diagnostic}"),
            }
        }
        let status = cargo.wait()?;
        assert!(
            status.success() || has_failed,
            "cargo failed: {}",
            fs::read_to_string(&log)?
        );
        Ok(errors)
    }
}

/// The text that an error is of.
fn module(diagnostic: &Diagnostic) -> Option<usize> {
    let own = diagnostic.spans.iter().find_map(of_span);
    own.or_else(|| diagnostic.children.iter().find_map(module))
}

fn of_span(span: &DiagnosticSpan) -> Option<usize> {
    let file = Path::new(&span.file_name)
        .file_stem()
        .and_then(|name| name.to_str());
    let index = file
        .and_then(|name| name.strip_prefix('m'))
        .and_then(|rest| rest.parse().ok());
    index.or_else(|| of_span(&span.expansion.as_ref()?.span))
}

/// Returns the place of a span in the text, at any depth of macros.
pub fn in_text(span: &DiagnosticSpan) -> &DiagnosticSpan {
    match &span.expansion {
        Some(expansion) if !is_of_text(span) => in_text(&expansion.span),
        _ => span,
    }
}

fn is_of_text(span: &DiagnosticSpan) -> bool {
    let path = Path::new(&span.file_name);
    path.starts_with("src/bin")
}
