//! `cargo xtask bench`: the measurements, against a PostgreSQL with the settings of a real machine.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::servers::{Servers, Tuning};
use crate::{child, nested};
use against::Against;

mod against;
mod build;
mod checkout;
mod revision;

const PACKAGE: &str = "sendoff-bench";

/// Measure one group of benchmarks against a PostgreSQL that syncs to disk
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The group to measure
    group: String,
    /// Write the numbers as JSON
    #[arg(long)]
    json: bool,
    /// Measure only figures whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Rounds a figure [default: 5; 9 with --against]
    #[arg(long)]
    rounds: Option<u32>,
    /// Also compare with this revision (commit, tag or branch): build it and let both take turns
    ///
    /// Adds the figures `postgres_drain_vs_revision` and `sqlite_drain_vs_revision` to the group `core`: this checkout over that
    /// revision. Each revision is measured by its own benchmark program, on databases that its own migrations created.
    #[arg(long, value_name = "REV")]
    against: Option<String>,
    /// Write pictures of what was measured into this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Keep the scratch folder, with the servers' logs, when the run fails
    #[arg(long)]
    keep: bool,
}

/// Builds the benchmarks in release mode and runs one group of them.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Built before the servers start: a compiler that runs next to the measurement would be part of the numbers.
    let against = match &args.against {
        Some(name) => Some(Against::build(name, &args.selection())?),
        None => {
            build_here()?;
            None
        }
    };
    let mut servers = Servers::start(Tuning::Bench, args.keep)?;
    let mut bench = match &against {
        Some(against) => against.command()?,
        None => run_here()?,
    };
    bench.args(args.selection());
    bench.args(args.json.then_some("--json"));
    if let Some(rounds) = args.rounds {
        bench.args(["--rounds", &rounds.to_string()]);
    }
    if let Some(folder) = &args.plots {
        bench.arg("--plots").arg(std::path::absolute(folder)?);
    }
    if !child::run(bench.envs(servers.variables()))?.success() {
        return Ok(ExitCode::FAILURE);
    }
    servers.succeeded();
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// What is to be measured.
    fn selection(&self) -> Vec<&str> {
        let only = self.only.iter().flat_map(|only| ["--only", only]);
        std::iter::once(self.group.as_str()).chain(only).collect()
    }
}

fn build_here() -> Result<()> {
    let mut build = nested::cargo()?;
    if !child::run(build.args(["build", "--profile", "bench", "--package", PACKAGE]))?.success() {
        bail!("the benchmark program was not built: see above");
    }
    Ok(())
}

fn run_here() -> Result<Command> {
    let mut run = nested::cargo()?;
    run.args(["run", "--quiet", "--profile", "bench", "--package", PACKAGE, "--"]);
    Ok(run)
}
