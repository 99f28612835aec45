//! A private MariaDB, with a replica if a test wants one.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use super::port::Port;
use super::postgres::within;
use super::process::Process;
use super::{account, family, program};

/// The account of the tests, who may do everything.
const USER: &str = "sendoff";

/// Runs when the server starts, and is not told to a replica, which has it from its own start.
const SETUP: &str = "SET sql_log_bin = 0;\n\
    CREATE OR REPLACE USER sendoff@'127.0.0.1' IDENTIFIED BY 'sendoff';\n\
    GRANT ALL ON *.* TO sendoff@'127.0.0.1' WITH GRANT OPTION;\n";

/// A MariaDB of one test, with a binary log. Its port and its data stay its own until it is dropped.
pub struct MariaDb {
    process: Option<Process>,
    port: Port,
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl MariaDb {
    /// Starts one with no database of its own, and with these variables in its environment.
    pub fn start(variables: &[(&str, &str)]) -> Self {
        let folder = program::folder("mariadb");
        let home = folder.path();
        std::fs::create_dir(home.join("temporary")).expect("the folder is ours");
        program::write(&home.join("setup.sql"), [SETUP.to_owned()]);
        account::give(home);
        account::run(
            account::command(&program::find("SENDOFF_TEST_MARIADB_INSTALL", "mariadb-install-db"))
                .args([
                    "--no-defaults",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ])
                .arg(format!("--datadir={}", home.join("data").display()))
                .env("TMPDIR", home.join("temporary"))
                .current_dir(home),
        );
        let mut server = Self {
            process: None,
            port: Port::reserve(),
            folder,
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        server.launch();
        server
    }

    /// Starts a server that follows this one, which must be new, by way of this port: the server's own, or that of a proxy
    /// which can be cut. It takes no writes but those of this one.
    pub fn replica(&self, by_way_of: u16) -> Self {
        let replica = Self::start(&[]);
        replica.sql(&format!(
            "SET GLOBAL read_only = 1; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {by_way_of}, \
             MASTER_USER = '{USER}', MASTER_PASSWORD = '{USER}', MASTER_CONNECT_RETRY = 1, \
             MASTER_USE_GTID = slave_pos; START SLAVE"
        ));
        replica
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        format!("mysql://{USER}:{USER}@127.0.0.1:{}/mysql", self.port.number)
    }

    /// Where its data and its log are: a folder of the server's account.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs SQL and returns what the client prints: fields with tabs in between, a row a line.
    pub fn sql(&self, sql: &str) -> String {
        account::run(&mut self.client(sql)).trim_end().to_owned()
    }

    /// Waits until a replica has everything that is committed here by now.
    pub fn wait_until_followed(&self, replica: &Self) {
        let here = self.sql("SELECT @@gtid_binlog_pos");
        let waited = replica.sql(&format!("SELECT MASTER_GTID_WAIT('{here}', 60)"));
        assert_eq!(
            waited,
            "0",
            "the replica does not follow: {}",
            replica.sql("SHOW SLAVE STATUS")
        );
    }

    /// Stops following, for good: what has arrived is applied, and writes are taken.
    pub fn promote(&self) {
        self.sql("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
    }

    /// Ends it without a warning.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            family::forget_clock(process.id());
        }
    }

    /// Stops it in its tracks: connections stay open and nothing is answered.
    pub fn pause(&self) {
        if let Some(process) = &self.process {
            process.signal(Signal::STOP);
        }
    }

    /// Starts it again, with the data that it has kept.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    fn launch(&mut self) {
        let home = self.folder.path();
        let file = |name: &str| home.join(name).display().to_string();
        let server = program::find("SENDOFF_TEST_MARIADB_SERVER", "mariadbd");
        let mut command = account::command_with(&self.variables, &server);
        command
            .args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args([
                "--lower-case-table-names=0",
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=32M",
            ])
            .args([
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-doublewrite=0",
                "--sync-binlog=0",
            ])
            .args([
                "--log-bin=changes",
                "--log-slave-updates",
                "--binlog-format=ROW",
                "--gtid-strict-mode=1",
            ])
            .args([
                // A number that no other server has: a port is one's own.
                format!("--server-id={}", self.port.number),
                format!("--port={}", self.port.number),
                format!("--datadir={}", file("data")),
                format!("--socket={}", file("socket")),
                format!("--pid-file={}", file("pid")),
                format!("--tmpdir={}", file("temporary")),
                format!("--init-file={}", file("setup.sql")),
            ])
            .current_dir(home);
        let log = home.join("console.log");
        self.process = Some(Process::start("MariaDB", command, log));
        let answers = within(|| account::try_run(&mut self.client("SELECT 1")).is_ok());
        assert!(
            answers,
            "MariaDB does not start. {}",
            self.process.as_ref().map_or_else(String::new, Process::tail)
        );
    }

    fn client(&self, sql: &str) -> Command {
        let mut client = account::command(&PathBuf::from("mariadb"));
        client
            .args([
                "--no-defaults",
                "--host=127.0.0.1",
                "--connect-timeout=5",
                "--batch",
                "--skip-column-names",
            ])
            .args([
                format!("--user={USER}"),
                format!("--password={USER}"),
                format!("--port={}", self.port.number),
            ])
            .arg(format!("--execute={sql}"))
            .current_dir("/");
        client
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.kill();
    }
}
