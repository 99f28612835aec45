//! The measurements of Sendoff: ratios against baselines in the same run, never bare times.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod backlog;
mod celery;
mod conflicts;
mod core;
mod cpu;
mod figure;
mod mariadb;
mod plot;
mod sinks;
mod subject;
mod watch;
mod work;

use clap::{Parser, ValueEnum};
use figure::Figures;
use sendoff_tokio_postgres as _;

#[derive(Parser)]
struct Args {
    /// What to measure
    group: Group,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Measure only figures whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Rounds a figure
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Write pictures of it into this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    plots: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Group {
    Core,
    Backlog,
    Sinks,
    /// Row leases: the strategy that PostgreSQL, MySQL and SQLite share
    Mysql,
    /// The tables of django-celery-outbox, against its own relay
    Celery,
    /// Internal: relays those tables as a process of its own
    CeleryRelay,
    /// What it costs to be watched
    Watch,
    /// Internal: drains unwatched, as a process of its own
    BareDrain,
    /// Internal: drains watched, as a process of its own
    WatchedDrain,
    /// Internal: drains as a process of its own, so that its memory can be read
    Drain,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut figures = Figures::new(args.json, args.only, args.rounds.max(1), args.plots);
    match args.group {
        Group::Core => core::measure(&mut figures).await?,
        Group::Backlog => backlog::measure(&mut figures).await?,
        Group::Sinks => sinks::measure(&mut figures).await?,
        Group::Mysql => work::measure(&mut figures).await?,
        Group::Celery => celery::measure(&mut figures).await?,
        Group::CeleryRelay => return celery::relay().await,
        Group::Watch => watch::measure(&mut figures).await?,
        Group::BareDrain => return watch::drain(false).await,
        Group::WatchedDrain => return watch::drain(true).await,
        Group::Drain => return backlog::drain().await,
    }
    figures.finish();
    Ok(())
}
