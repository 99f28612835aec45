//! Sendoff's benchmarks: ratios against baselines in the same run, never absolute times.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
mod backlog;
mod busy;
mod celery;
mod conflicts;
mod core;
mod cpu;
mod figure;
mod limits;
mod mariadb;
mod part;
mod plot;
mod sinks;
mod subject;
mod watch;
mod work;

use std::path::PathBuf;

use against::Against;
use anyhow::Context;
use clap::{Parser, ValueEnum};
use figure::{Figures, Revisions};
use part::Part;
use sendoff_tokio_postgres as _;

#[derive(Parser)]
struct Args {
    /// What to measure
    #[arg(required_unless_present_any = ["part", "parts"])]
    group: Option<Group>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Measure only figures whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Rounds per figure [default: 5; 9 with --against]
    #[arg(long)]
    rounds: Option<usize>,
    /// Write SVG plots into this folder
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Also measure against this program: `sendoff-bench` of another revision
    #[arg(long, value_name = "PROGRAM", requires_all = ["ours", "theirs"])]
    against: Option<PathBuf>,
    /// Name of this revision
    #[arg(long, value_name = "REVISION")]
    ours: Option<String>,
    /// Name of the other revision
    #[arg(long, value_name = "REVISION")]
    theirs: Option<String>,
    /// Internal: list the parts that can be measured against another revision
    #[arg(long)]
    parts: bool,
    /// Internal: measure one part once and print its rate as JSON
    #[arg(long)]
    part: Option<Part>,
}

impl Args {
    /// A comparison has more rounds, because it must distinguish 3 % from noise.
    fn rounds(&self) -> usize {
        let default = if self.against.is_some() { 9 } else { 5 };
        self.rounds.unwrap_or(default).max(1)
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Group {
    Core,
    Backlog,
    Sinks,
    /// Row leases, which PostgreSQL, MySQL and SQLite share
    Mysql,
    /// The tables of django-celery-outbox, against its own relay
    Celery,
    /// Internal: relay those tables in a separate process
    CeleryRelay,
    /// The cost of metrics, traces and logs
    Watch,
    /// Speed after crashes, memory and speed with large rows, and the cost of an emit
    Limits,
    /// Internal: drain large rows in a separate process, so that its memory can be measured
    LargeDrain,
    /// Internal: drain without metrics, traces and logs, in a separate process
    BareDrain,
    /// Internal: drain with metrics, traces and logs, in a separate process
    WatchedDrain,
    /// Internal: drain in a separate process, so that its memory can be measured
    Drain,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let rounds = args.rounds();
    let mut figures = Figures::new(args.json, args.only, rounds, args.plots);
    if args.parts {
        for part in against::parts(&figures, args.group)? {
            println!("{}", part.name());
        }
        return Ok(());
    }
    if let Some(part) = args.part {
        println!("{}", part.measure().await?);
        return Ok(());
    }
    let group = args
        .group
        .context("no group is given: name one, as in `cargo xtask bench core`")?;
    figures.watch_the_machine();
    let against = match (args.against, args.ours, args.theirs) {
        (Some(program), Some(ours), Some(theirs)) => {
            let parts = against::parts(&figures, Some(group))?;
            Some(Against::prepare(&program, Revisions { ours, theirs }, parts).await?)
        }
        _ => None,
    };
    match group {
        Group::Core => core::measure(&mut figures).await?,
        Group::Backlog => backlog::measure(&mut figures).await?,
        Group::Sinks => sinks::measure(&mut figures).await?,
        Group::Mysql => work::measure(&mut figures).await?,
        Group::Celery => celery::measure(&mut figures).await?,
        Group::CeleryRelay => return celery::relay().await,
        Group::Watch => watch::measure(&mut figures).await?,
        Group::Limits => limits::measure(&mut figures).await?,
        Group::LargeDrain => return limits::large::drain().await,
        Group::BareDrain => return watch::drain(false).await,
        Group::WatchedDrain => return watch::drain(true).await,
        Group::Drain => return backlog::drain().await,
    }
    if let Some(against) = against {
        against.measure(&mut figures).await?;
    }
    figures.finish();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(arguments: &[&str]) -> usize {
        let program = ["sendoff-bench", "core"];
        Args::try_parse_from(program.iter().chain(arguments)).unwrap().rounds()
    }

    #[test]
    fn comparison_with_another_revision_has_nine_rounds_unless_told_otherwise() {
        let against = ["--against", "program", "--ours", "a", "--theirs", "b"];
        assert_eq!(rounds(&[]), 5);
        assert_eq!(rounds(&against), 9);
        assert_eq!(rounds(&[&against[..], &["--rounds", "3"]].concat()), 3);
    }

    #[test]
    fn part_needs_no_group_and_a_measurement_does() {
        let parse = |argument: &[&str]| Args::try_parse_from([&["sendoff-bench"], argument].concat());
        assert!(parse(&["--part", "sqlite_drain"]).is_ok());
        assert!(parse(&["--parts"]).is_ok());
        assert!(parse(&["--json"]).is_err());
    }
}
