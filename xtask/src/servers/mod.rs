//! `cargo xtask servers`: the private servers, for the time of one command.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::languages::Languages;
use crate::{child, nested, packages, tansu};
use mariadb::MariaDb;
use pgbouncer::PgBouncer;
use postgres::Postgres;
pub(crate) use postgres::Tuning;
use rabbitmq::RabbitMq;
use scratch::Scratch;

mod account;
mod instance;
mod mariadb;
mod nursery;
mod pgbouncer;
mod port;
mod postgres;
mod rabbitmq;
mod scratch;

/// Run a command with private servers and the SENDOFF_TEST_* variables that name them
#[derive(clap::Args)]
pub(crate) struct Args {
    /// With a PostgreSQL that syncs to disk, as for benchmarks
    #[arg(long)]
    durable: bool,
    /// Keep the scratch folder, with the servers' logs, when the command fails
    #[arg(long)]
    keep: bool,
    /// The command to run
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Starts the servers, runs the command, stops the servers, and ends as the command did.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut servers = Servers::start(if args.durable { Tuning::Bench } else { Tuning::Tests }, args.keep)?;
    let (program, rest) = args
        .command
        .split_first()
        .context("no command given: cargo xtask servers -- CMD")?;
    let mut command = Command::new(program);
    nested::prepare(&mut command)?;
    let status = child::run(command.args(rest).envs(servers.variables()))?;
    if status.success() {
        servers.succeeded();
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The running private servers. Dropping it stops them and removes their scratch folder.
///
/// Fields drop in this order: the pooler before the server behind it, the folder last.
pub(crate) struct Servers {
    pgbouncer: PgBouncer,
    postgres: Postgres,
    mariadb: MariaDb,
    rabbitmq: Option<RabbitMq>,
    /// Servers that a test starts by itself, because that takes them milliseconds.
    programs: Vec<(&'static str, OsString)>,
    faketime: PathBuf,
    languages: Languages,
    scratch: Scratch,
}

impl Servers {
    /// Installs what is missing and starts everything on free ports.
    pub(crate) fn start(tuning: Tuning, keep_on_failure: bool) -> Result<Self> {
        packages::install_missing()?;
        let kafka = match tuning {
            Tuning::Tests => Some(tansu::install_missing()?),
            Tuning::Bench => None,
        };
        let scratch = Scratch::create(keep_on_failure)?;
        let faketime = packages::FAKETIME.file()?;
        let languages = Languages::install()?;
        let (rabbitmq, mariadb, databases) = thread::scope(|scope| {
            let mariadb = scope.spawn(|| retrying(|attempt| MariaDb::start(&scratch.attempt(attempt)?, tuning)));
            let rabbitmq = scope.spawn(|| match tuning {
                Tuning::Tests => retrying(|attempt| RabbitMq::start(&scratch.attempt(attempt)?)).map(Some),
                Tuning::Bench => Ok(None),
            });
            let databases =
                retrying(|attempt| Postgres::start(&scratch.attempt(attempt)?, tuning)).and_then(|postgres| {
                    let pgbouncer = retrying(|attempt| PgBouncer::start(&scratch.attempt(attempt)?, &postgres))?;
                    Ok((postgres, pgbouncer))
                });
            let rabbitmq = rabbitmq
                .join()
                .unwrap_or_else(|_| Err(anyhow!("starting RabbitMQ panicked")));
            let mariadb = mariadb
                .join()
                .unwrap_or_else(|_| Err(anyhow!("starting MariaDB panicked")));
            (rabbitmq, mariadb, databases)
        });
        let (postgres, pgbouncer) = databases?;
        let mut programs = packages::programs()?;
        if let Some(kafka) = kafka {
            programs.push((tansu::VARIABLE, kafka.into()));
        }
        Ok(Self {
            pgbouncer,
            postgres,
            mariadb: mariadb?,
            rabbitmq: rabbitmq?,
            programs,
            faketime,
            languages,
            scratch,
        })
    }

    /// What the tests read to find the servers.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![
            ("SENDOFF_TEST_POSTGRES_URL", self.postgres.url().into()),
            ("SENDOFF_TEST_PGBOUNCER_URL", self.pgbouncer.url().into()),
            ("SENDOFF_TEST_MYSQL_URL", self.mariadb.url().into()),
            ("SENDOFF_TEST_PG_BIN", self.postgres.bin.clone().into()),
            ("SENDOFF_TEST_FAKETIME_LIB", self.faketime.clone().into()),
            ("SENDOFF_TEST_SCRATCH", self.scratch.for_tests().into()),
        ];
        variables.extend(self.languages.variables());
        variables.extend(self.rabbitmq.iter().flat_map(RabbitMq::variables));
        variables.extend(self.programs.clone());
        variables
    }

    /// Creates an empty database on the private PostgreSQL and says where it is.
    pub(crate) fn create_database(&self, name: &str) -> Result<String> {
        self.postgres.create_database(name)
    }

    /// Creates an empty database on the private MariaDB and says where it is.
    pub(crate) fn create_mysql_database(&self, name: &str) -> Result<String> {
        self.mariadb.create_database(name)
    }

    /// The folder that tests may write to.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.scratch.for_tests()
    }

    /// Says that the logs are of no interest any more.
    pub(crate) fn succeeded(&mut self) {
        self.scratch.discard();
    }
}

/// Starts a server again when another process took its port between the choice and the bind.
fn retrying<T>(mut start: impl FnMut(u32) -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        match start(attempt) {
            Err(error) if attempt < 3 && format!("{error:#}").to_lowercase().contains("in use") => {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn server_whose_port_was_taken_is_started_again() {
        let started = retrying(|attempt| {
            if attempt == 1 {
                bail!("PostgreSQL ended. The end of its log:\nbind: Address already in use");
            }
            Ok(attempt)
        });
        assert_eq!(started.unwrap(), 2);
    }

    #[test]
    fn server_that_cannot_start_is_not_tried_again() {
        let mut attempts = 0;
        let started: Result<()> = retrying(|_| {
            attempts += 1;
            bail!("no space left on device")
        });
        assert!(started.is_err());
        assert_eq!(attempts, 1);
    }
}
