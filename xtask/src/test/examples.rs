//! The examples, each run to its end against the private servers.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::counts::Counts;
use super::report::Outcome;
use crate::servers::Servers;
use crate::{child, nested};

/// An example shows one thing and ends.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Builds and runs every file of `examples/examples`, so that a new one is run without being named anywhere.
pub(crate) fn run(servers: &Servers) -> Result<Outcome> {
    let names = names(&nested::root()?.join("examples/examples"))?;
    if names.is_empty() {
        println!("there are no examples");
        return Ok(Outcome::default());
    }
    let mut build = nested::cargo()?;
    build.args(["build", "--package", "sendoff-examples", "--examples"]);
    let built = Outcome::of(child::run(&mut build)?);
    if built.broken {
        return Ok(built);
    }
    let mut counts = Counts::default();
    for name in &names {
        let start = Instant::now();
        match run_one(name, servers) {
            Ok(()) => {
                counts.passed += 1;
                println!("{name}: ok in {:.1} s", start.elapsed().as_secs_f64());
            }
            Err(error) => {
                counts.failed += 1;
                println!("{name}: FAILED: {error:#}");
            }
        }
    }
    Ok(Outcome { counts, broken: false })
}

fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

fn run_one(name: &str, servers: &Servers) -> Result<()> {
    // A database of its own: an example may create tables under everyday names. Its name says which kind it needs.
    let database = match name.contains("mysql") {
        true => servers.create_mysql_database(&format!("example_{name}"))?,
        false => servers.create_database(&format!("example_{name}"))?,
    };
    let log = servers.scratch().join(format!("example-{name}.log"));
    let output = File::create(&log)?;
    let mut example = Command::new(nested::target()?.join("debug/examples").join(name));
    nested::prepare(&mut example)?;
    example
        .current_dir(nested::root()?)
        .envs(servers.variables())
        .env("DATABASE_URL", database);
    example.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let written = || format!("it wrote:\n{}", fs::read_to_string(&log).unwrap_or_default());
    let status = child::run_within(&mut example, ENDS_WITHIN).with_context(written)?;
    if !status.success() {
        bail!("ended with {status}; {}", written());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rust_file_is_an_example() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["two.rs", "one.rs", "README.md"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(names(folder.path()).unwrap(), ["one", "two"]);
    }
}
