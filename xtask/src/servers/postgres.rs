//! A private PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::instance::Instance;
use super::{account, port};
use crate::{child, packages};

const ADDRESS: &str = "postgres://postgres@127.0.0.1";

/// What the server is tuned for.
#[derive(Clone, Copy)]
pub(crate) enum Tuning {
    /// Many short-lived databases, nothing worth keeping after a crash.
    Tests,
    /// The durability and memory of a real machine, so that measured numbers mean something.
    Bench,
}

impl Tuning {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Tests => &[
                "fsync=off",
                "full_page_writes=off",
                "shared_buffers=256MB",
                "max_connections=300",
                // Two-phase transactions are off by default; the tests hold one open to block a horizon.
                "max_prepared_transactions=10",
            ],
            Self::Bench => &[
                "fsync=on",
                "synchronous_commit=on",
                "shared_buffers=1GB",
                "max_wal_size=8GB",
                "wal_level=replica",
                "max_connections=300",
                "max_prepared_transactions=10",
            ],
        }
    }
}

/// A running PostgreSQL that trusts every connection from this machine.
pub(crate) struct Postgres {
    pub(crate) port: u16,
    /// The folder of `postgres`, `psql`, `pg_dump` and the others of the same version.
    pub(crate) bin: PathBuf,
    _instance: Instance,
}

impl Postgres {
    /// Creates a cluster in `scratch` and waits until it answers a query.
    pub(crate) fn start(scratch: &Path, tuning: Tuning) -> Result<Self> {
        let postgres = packages::POSTGRESQL.file()?;
        let bin = postgres
            .parent()
            .context("the postgres binary has no folder")?
            .to_owned();
        let home = scratch.join("postgres");
        fs::create_dir(&home)?;
        account::give(&home)?;
        let data = home.join("data");
        child::run_quietly(
            account::command(&bin.join("initdb"))
                .args([
                    "--username=postgres",
                    "--auth=trust",
                    "--encoding=UTF8",
                    "--locale=C.UTF-8",
                    "--no-sync",
                ])
                .arg("--pgdata")
                .arg(&data)
                .current_dir(&home),
        )
        .context("could not create the private PostgreSQL cluster")?;

        let port = port::free()?;
        let mut command = account::command(&postgres);
        command
            .arg("-D")
            .arg(&data)
            .arg("-p")
            .arg(port.to_string())
            .current_dir(&home);
        command
            .arg("-k")
            .arg(&home)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "logging_collector=off"]);
        for setting in tuning.settings() {
            command.args(["-c", setting]);
        }
        // SIGINT is the fast shutdown: it ends the sessions that a failed test left open.
        let mut instance = Instance::start("PostgreSQL", &mut command, Signal::INT, scratch.join("postgres.log"))?;
        instance.wait_until(|| answers(&bin, &url(port)))?;
        Ok(Self {
            port,
            bin,
            _instance: instance,
        })
    }

    /// Where to connect.
    pub(crate) fn url(&self) -> String {
        url(self.port)
    }

    /// Creates an empty database and says where it is.
    pub(crate) fn create_database(&self, name: &str) -> Result<String> {
        let mut createdb = account::command(&self.bin.join("createdb"));
        createdb
            .arg("--maintenance-db")
            .arg(self.url())
            .arg(name)
            .current_dir("/");
        child::run_quietly(&mut createdb)?;
        Ok(format!("{ADDRESS}:{}/{name}", self.port))
    }
}

/// The address of a server, or of a pooler, on `port`.
pub(super) fn url(port: u16) -> String {
    format!("{ADDRESS}:{port}/postgres")
}

/// Whether a query comes back from `url`.
pub(super) fn answers(bin: &Path, url: &str) -> bool {
    let mut psql = account::command(&bin.join("psql"));
    psql.args(["-XAtqc", "select 1"])
        .arg(url)
        .current_dir("/")
        .env("PGCONNECT_TIMEOUT", "5");
    child::run_quietly(&mut psql).is_ok()
}
