//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::commands::{
    audit, celery_dead, celery_relay, celery_stats, cleanup, completions, config, dead, demo, emit, failures, init,
    jobs, keys, lanes, ls, man, migrate, pause, reap, relay, retry, show, sink, stats, status,
};
use crate::log::{Format, Level};
use crate::output::ColorChoice;

/// The transactional outbox: messages leave if, and only if, their transaction commits.
#[derive(Debug, Parser)]
#[command(
    name = "sendoff",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Start with `sendoff demo`. Data goes to standard output, everything else to standard error.\n\
                  Exit codes: 0 done, 1 failure, 2 usage or configuration, 3 database unreachable, 4 schema, \
                  5 not found, 6 denied. `sendoff status` also has 7 warning and 8 critical."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Read this configuration file [default: ./sendoff.toml if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "SENDOFF_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Use this database: postgres://user@host/database, mysql://… or sqlite:FILE
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Use one of several configured databases; without this flag, the relay serves all of them
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "database")]
    pub(crate) source: Option<String>,
    /// Print JSON: one document on one line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show the causes of errors and raise the log level by one step (-vv: two steps)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Level of the log on standard error
    #[arg(long, global = true, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<Level>,
    /// Format of the log
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<Format>,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Args),
    Init(init::Args),
    Migrate(migrate::Args),
    Relay(relay::Args),
    Emit(Box<emit::Args>),
    Ls(Box<ls::Args>),
    Show(show::Args),
    Status(status::Args),
    Stats(stats::Args),
    Failures(Box<failures::Args>),
    Retry(Box<retry::Args>),
    Dead(dead::Args),
    Keys(keys::Args),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Lanes(lanes::Args),
    Jobs(jobs::Args),
    Reap(reap::Args),
    Cleanup(cleanup::Args),
    Audit(audit::Args),
    CeleryRelay(Box<celery_relay::Args>),
    CeleryDead(celery_dead::Args),
    CeleryStats(celery_stats::Args),
    Sink(sink::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
