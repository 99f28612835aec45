//! `cargo xtask bench`: the measurements, against a PostgreSQL with the settings of a real machine.

use std::process::ExitCode;

use anyhow::Result;

use crate::servers::{Servers, Tuning};
use crate::{child, nested};

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
    /// Rounds a figure
    #[arg(long)]
    rounds: Option<u32>,
    /// Write pictures of what was measured into this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    plots: Option<std::path::PathBuf>,
    /// Keep the scratch folder, with the servers' logs, when the run fails
    #[arg(long)]
    keep: bool,
}

/// Builds the benchmarks in release mode and runs one group of them.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Built before the servers start: a compiler that runs next to the measurement would be part of the numbers.
    let mut build = nested::cargo()?;
    if !child::run(build.args(["build", "--release", "--package", "sendoff-bench"]))?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let mut servers = Servers::start(Tuning::Bench, args.keep)?;
    let mut bench = nested::cargo()?;
    bench.args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "sendoff-bench",
        "--",
        &args.group,
    ]);
    bench.args(args.json.then_some("--json"));
    bench.args(args.only.iter().flat_map(|only| ["--only", only]));
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
