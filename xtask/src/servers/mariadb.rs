//! A private MariaDB.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::instance::Instance;
use super::postgres::Tuning;
use super::{account, port};
use crate::{child, packages};

/// The account of the tests, who may do everything. A password with a space in it, so that one that is not encoded, or
/// that shows up in an error, is noticed.
const USER: &str = "sendoff";
const PASSWORD: &str = "open sesame";

/// Runs when the server starts.
const SETUP: &str = "CREATE DATABASE IF NOT EXISTS sendoff;\n\
    CREATE OR REPLACE USER sendoff@'127.0.0.1' IDENTIFIED BY 'open sesame';\n\
    GRANT ALL ON *.* TO sendoff@'127.0.0.1' WITH GRANT OPTION;\n";

/// Whatever the server is for.
const ALWAYS: &[&str] = &[
    "--no-defaults",
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--max-connections=500",
    "--lower-case-table-names=0",
];

fn settings(tuning: Tuning) -> &'static [&'static str] {
    match tuning {
        Tuning::Tests => &[
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=0",
            "--innodb-buffer-pool-size=256M",
            "--innodb-log-file-size=64M",
            // Nothing may depend on the zone that a server happens to be in.
            "--default-time-zone=+05:30",
        ],
        Tuning::Bench => &[
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=1G",
            "--innodb-log-file-size=1G",
        ],
    }
}

/// A running MariaDB.
pub(crate) struct MariaDb {
    port: u16,
    _instance: Instance,
}

impl MariaDb {
    /// Creates a data folder in `scratch` and waits until the server answers a query.
    pub(crate) fn start(scratch: &Path, tuning: Tuning) -> Result<Self> {
        let server = packages::MARIADB.file()?;
        let home = scratch.join("mariadb");
        fs::create_dir(&home)?;
        let setup = home.join("setup.sql");
        fs::write(&setup, SETUP)?;
        // A server that starts removes all temporary tables from its folder, those of another one as well.
        let temporary = home.join("temporary");
        fs::create_dir(&temporary)?;
        account::give(&home)?;
        let data = format!("--datadir={}", home.join("data").display());
        child::run_quietly(
            account::command(Path::new("mariadb-install-db"))
                .args([
                    "--no-defaults",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ])
                .arg(&data)
                .env("TMPDIR", &temporary)
                .current_dir(&home),
        )
        .context("could not create the data folder of the private MariaDB")?;

        let port = port::free()?;
        let mut command = account::command(&server);
        command
            .args(ALWAYS)
            .args(settings(tuning))
            .args([
                data,
                format!("--port={port}"),
                format!("--socket={}", home.join("socket").display()),
                format!("--pid-file={}", home.join("pid").display()),
                format!("--tmpdir={}", temporary.display()),
                format!("--init-file={}", setup.display()),
            ])
            .current_dir(&home);
        // Nothing in it is worth an orderly stop.
        let mut instance = Instance::start("MariaDB", &mut command, Signal::KILL, scratch.join("mariadb.log"))?;
        instance.wait_until(|| execute(port, "SELECT 1").is_ok())?;
        Ok(Self {
            port,
            _instance: instance,
        })
    }

    /// Where to connect.
    pub(crate) fn url(&self) -> String {
        self.url_of("sendoff")
    }

    /// Creates an empty database and says where it is.
    pub(crate) fn create_database(&self, name: &str) -> Result<String> {
        execute(self.port, &format!("CREATE DATABASE {name}"))?;
        Ok(self.url_of(name))
    }

    fn url_of(&self, database: &str) -> String {
        let password = PASSWORD.replace(' ', "%20");
        format!("mysql://{USER}:{password}@127.0.0.1:{}/{database}", self.port)
    }
}

/// Runs a statement.
fn execute(port: u16, sql: &str) -> Result<()> {
    let mut client = account::command(Path::new("mariadb"));
    client
        .args(["--no-defaults", "--host=127.0.0.1", "--connect-timeout=5"])
        .args([
            format!("--user={USER}"),
            format!("--password={PASSWORD}"),
            format!("--port={port}"),
        ])
        .args([&format!("--execute={sql}"), "sendoff"])
        .current_dir("/");
    child::run_quietly(&mut client).map(drop)
}
