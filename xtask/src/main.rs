//! Developer tasks of Sendoff: `cargo xtask test` is everything, `cargo xtask servers -- CMD` is the quick loop.
#![forbid(unsafe_code)]
// A command-line program talks through its standard streams.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

mod bench;
mod child;
mod interrupt;
mod languages;
mod nested;
mod packages;
mod servers;
mod tansu;
mod test;
mod tidy;

#[derive(Parser)]
#[command(about = "Developer tasks of Sendoff", bin_name = "cargo xtask")]
enum Task {
    Test(test::Args),
    Servers(servers::Args),
    /// Check the conventions that the compiler cannot
    Tidy,
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let outcome = interrupt::install().and_then(|()| run(&Task::parse()));
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(task: &Task) -> Result<ExitCode> {
    match task {
        Task::Test(args) => test::run(args),
        Task::Servers(args) => servers::run(args),
        Task::Tidy => tidy::run(),
        Task::Bench(args) => bench::run(args),
    }
}
