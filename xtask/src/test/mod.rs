//! `cargo xtask test`: everything that must hold before a change is merged.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::servers::{Servers, Tuning};
use crate::{child, nested, tidy};
use report::{Outcome, Report};

mod canary;
mod counts;
mod examples;
mod nextest;
mod packages;
mod report;

/// Run every check: format, lints, conventions, tests, doc tests, examples, packages
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only the tests that this nextest expression selects, and no other check
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Keep the scratch folder, with the servers' logs, when something fails
    #[arg(long)]
    keep: bool,
    /// Passed on to `cargo nextest run`
    #[arg(last = true)]
    extra: Vec<OsString>,
}

/// Runs the checks one after the other; a failed one does not hide what the next would say.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // First, because a server that cannot be had is known in seconds and the rest takes minutes.
    let mut servers = Servers::start(Tuning::Tests, args.keep)?;
    nextest::install_missing()?;

    let mut report = Report::default();
    if args.filter.is_none() {
        report.step("format", || cargo(&["fmt", "--all", "--check"]))?;
        report.step("tidy", conventions)?;
        report.step("clippy", || clippy(&[]))?;
        report.step("clippy, with all features", || clippy(&WITH_ALL_FEATURES))?;
    }
    report.step("tests", || nextest::run(args.filter.as_deref(), &args.extra, &servers))?;
    report.step("canaries", || canary::check(&nested::root()?))?;
    if args.filter.is_none() {
        report.step("doc tests", || doc_tests(&servers))?;
        report.step("examples", || examples::run(&servers))?;
        report.step("dependencies", dependencies)?;
        report.step("packages", packages::check)?;
    }
    let code = report.conclude();
    if code == ExitCode::SUCCESS {
        servers.succeeded();
    }
    Ok(code)
}

/// What is shipped has a Kafka sink and exports traces by gRPC, and so does what is tested; what `cargo build` builds has
/// neither.
const WITH_ALL_FEATURES: [&str; 2] = ["--features", "sendoff-cli/full"];

fn clippy(features: &[&str]) -> Result<Outcome> {
    let mut args = vec!["clippy", "--workspace", "--all-targets"];
    args.extend(features);
    args.extend(["--", "--deny", "warnings"]);
    cargo(&args)
}

/// A check that either holds or not.
fn cargo(args: &[&str]) -> Result<Outcome> {
    Ok(Outcome::of(child::run(nested::cargo()?.args(args))?))
}

fn conventions() -> Result<Outcome> {
    match tidy::violations(&nested::root()?)?.as_slice() {
        [] => Ok(Outcome::default()),
        violations => bail!("{}", violations.join("\n")),
    }
}

fn doc_tests(servers: &Servers) -> Result<Outcome> {
    let mut command = nested::cargo()?;
    command
        .args(["test", "--doc", "--workspace", "--no-fail-fast"])
        .envs(servers.variables());
    let (status, lines) = child::run_and_read(&mut command)?;
    Ok(Outcome {
        counts: counts::of_doc_tests(&lines),
        ..Outcome::of(status)
    })
}

/// Licences, sources and bans. The advisories are left out: their database comes from the network, and a change must
/// not fail because of what was published overnight.
fn dependencies() -> Result<Outcome> {
    let mut version = nested::cargo()?;
    if child::run_quietly(version.args(["deny", "--version"])).is_err() {
        println!("cargo-deny was not found, so licences and sources were not checked: cargo install cargo-deny");
        return Ok(Outcome::default());
    }
    cargo(&["deny", "check", "bans", "licenses", "sources"])
}

/// Colour, where the screen would have had it without the pipe that the counts are read from.
fn coloured(command: &mut Command) -> &mut Command {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() {
        command.args(["--color", "always"]);
    }
    command
}
