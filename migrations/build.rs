//! Lists the SQL files and writes the tables that `lib.rs` includes.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

#[path = "file_rules.rs"]
mod file_rules;

fn main() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let root = Path::new(&root);
    let functions = root.join("functions");

    // The whole folder, so that new and removed files are noticed too.
    println!("cargo::rerun-if-changed=.");

    let mut tables = migrations_table(root)?;
    tables.push_str(&functions_table(&functions)?);
    fs::write(Path::new(&env::var("OUT_DIR")?).join("tables.rs"), tables)?;
    Ok(())
}

fn migrations_table(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut table =
        String::from("/// Every migration, in order.\npub const MIGRATIONS: &[Migration] = &[\n");
    let mut versions = Vec::new();
    for file_name in sql_files(root)? {
        let (version, name) = file_rules::parse_migration(&file_name)?;
        versions.push(version);
        writeln!(
            table,
            "Migration {{ version: {version}, name: {name:?}, sql: {} }},",
            include(&file_name)
        )?;
    }
    table.push_str("];\n");
    file_rules::check_sequence(&versions)?;
    let latest = versions.len();
    writeln!(
        table,
        "/// The version of the newest migration.\npub const LATEST_VERSION: i32 = {latest};"
    )?;
    Ok(table)
}

fn functions_table(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut table =
        String::from("/// Every function, by name.\npub const FUNCTIONS: &[Function] = &[\n");
    for file_name in sql_files(folder)? {
        let sql = fs::read_to_string(folder.join(&file_name))?;
        let name = file_rules::parse_function(&file_name, &sql)?;
        writeln!(
            table,
            "Function {{ name: {name:?}, sql: {} }},",
            include(&format!("functions/{file_name}"))
        )?;
    }
    table.push_str("];\n");
    Ok(table)
}

/// The names of the folder's SQL files, sorted.
fn sql_files(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let name = path.file_name().and_then(|name| name.to_str());
            names.push(name.ok_or("a SQL file's name is not UTF-8")?.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn include(path: &str) -> String {
    format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{path}\"))")
}
