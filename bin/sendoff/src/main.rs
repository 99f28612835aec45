//! Sendoff on the command line.
//!
//! | file | what it does |
//! |---|---|
//! | `cli` | the flags |
//! | `commands/` | the subcommands, one file each |
//! | `session` | what a command works with: configuration, store, output |
//! | `config/` | `sendoff.toml` and the environment |
//! | `sinks/` | the sinks, one row each; only this module knows all of them |
//! | `store` | the stores; only this module knows all of them |
//! | `source/` | several databases in one process |
//! | `output`, `table`, `printable`, `age`, `payload`, `progress`, `log` | printed output and log lines |
//! | `trace/` | spans and their export |
//! | `exit`, `signals` | exit codes, printed errors, signals |
#![forbid(unsafe_code)]

mod age;
mod cli;
mod commands;
mod config;
mod exit;
mod filter;
mod log;
mod output;
mod payload;
mod printable;
mod progress;
mod reached;
mod reaper;
mod session;
mod signals;
mod sinks;
mod source;
mod store;
mod table;
mod trace;

use std::process::ExitCode;

use clap::Parser;
use sendoff::{Error, ErrorKind};

use cli::{Cli, Command};
use exit::{Done, conclude};
use session::Session;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::refuse(&error, std::env::args_os().any(|arg| arg == "--json")),
    };
    let session = Session::new(cli.global, &cli.command);
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let done = runtime.block_on(async {
                let done = run(cli.command, &session).await;
                trace::stop().await;
                done
            });
            // An abandoned read of standard input must not keep the process alive.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Error::new(ErrorKind::Backend, "cannot start the program's threads")
            .because(error.to_string())
            .next_step("check the limits of the process, such as `ulimit -u`")
            .with_source(error)
            .into()),
    };
    conclude(done, session.stderr, session.shows_sources(), session.output.json).into()
}

async fn run(command: Command, session: &Session) -> Done {
    match command {
        Command::Demo(args) => Box::pin(commands::demo::run(args, session)).await,
        Command::Init(args) => commands::init::run(args, session),
        Command::Migrate(args) => Box::pin(commands::migrate::run(args, session)).await,
        Command::Relay(args) => Box::pin(commands::relay::run(args, session)).await,
        Command::Emit(args) => Box::pin(commands::emit::run(*args, session)).await,
        Command::Ls(args) => Box::pin(commands::ls::run(*args, session)).await,
        Command::Show(args) => Box::pin(commands::show::run(args, session)).await,
        Command::Status(args) => Box::pin(commands::status::run(args, session)).await,
        Command::Stats(args) => Box::pin(commands::stats::run(args, session)).await,
        Command::Failures(args) => Box::pin(commands::failures::run(*args, session)).await,
        Command::Retry(args) => Box::pin(commands::retry::run(*args, session)).await,
        Command::Keys(args) => Box::pin(commands::keys::run(args, session)).await,
        Command::Pause(args) => Box::pin(commands::pause::pause(args, session)).await,
        Command::Resume(args) => Box::pin(commands::pause::resume(args, session)).await,
        Command::Lanes(args) => Box::pin(commands::lanes::run(args, session)).await,
        Command::Jobs(args) => Box::pin(commands::jobs::run(args, session)).await,
        Command::Reap(args) => Box::pin(commands::reap::run(args, session)).await,
        Command::Cleanup(args) => Box::pin(commands::cleanup::run(args, session)).await,
        Command::CeleryRelay(args) => Box::pin(commands::celery_relay::run(*args, session)).await,
        Command::CeleryStats(args) => Box::pin(commands::celery_stats::run(args, session)).await,
        Command::CeleryDead(args) => Box::pin(commands::celery_dead::run(args, session)).await,
        Command::Audit(args) => Box::pin(commands::audit::run(args, session)).await,
        Command::Completions(args) => commands::completions::run(args, session),
        Command::Man(args) => commands::man::run(args, session),
        Command::Dead(args) => Box::pin(commands::dead::run(args, session)).await,
        Command::Sink(args) => Box::pin(commands::sink::run(args, session)).await,
        Command::Config(args) => commands::config::run(args, session),
    }
}
