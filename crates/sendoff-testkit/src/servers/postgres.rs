//! A private PostgreSQL, with a standby if a test wants one.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use super::port::Port;
use super::process::Process;
use super::{account, family, program};

/// A PostgreSQL of one test, which trusts every connection from this machine. Its port and its data stay its own until it
/// is dropped.
///
/// What a kill loses is what the server had not written to its log of changes: files stay as the kernel has them.
pub struct Postgres {
    process: Option<Process>,
    port: Port,
    folder: TempDir,
    bin: PathBuf,
    settings: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Postgres {
    /// Starts one with these settings (`name=value`), and with these variables in its environment.
    pub fn start(settings: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut server = Self::new(settings, variables);
        account::run(
            account::command(&server.bin.join("initdb"))
                .args(["--username=postgres", "--auth=trust", "--no-sync"])
                .args(["--encoding=UTF8", "--locale=C.UTF-8", "--pgdata"])
                .arg(server.data())
                .current_dir(server.folder.path()),
        );
        server.launch();
        server
    }

    /// Starts a standby of it that gets the changes by way of this port: the server's own, or that of a proxy which can be
    /// cut.
    pub fn standby(&self, by_way_of: u16) -> Self {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        let mut standby = Self::new(&settings, &[]);
        account::run(
            account::command(&self.bin.join("pg_basebackup"))
                .args([
                    "--checkpoint=fast",
                    "--no-sync",
                    "--wal-method=stream",
                    "--write-recovery-conf",
                ])
                .arg(format!("--dbname=postgres://postgres@127.0.0.1:{by_way_of}/postgres"))
                .arg("--pgdata")
                .arg(standby.data())
                .current_dir(standby.folder.path()),
        );
        // A standby that has lost its primary asks for it again soon.
        standby.settings.push("wal_retrieve_retry_interval=200ms".to_owned());
        standby.launch();
        let streams = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        self.wait_until(streams, "1");
        standby
    }

    fn new(settings: &[&str], variables: &[(&str, &str)]) -> Self {
        let bin = std::env::var_os("SENDOFF_TEST_PG_BIN")
            .expect("SENDOFF_TEST_PG_BIN is not set: run the tests with `cargo xtask test`");
        let folder = program::folder("postgres");
        account::give(folder.path());
        Self {
            process: None,
            port: Port::reserve(),
            folder,
            bin: bin.into(),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port.number)
    }

    /// Where its data and its log are: a folder of the server's account.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs SQL and returns what `psql` prints: fields with `|` in between, a row a line.
    pub fn sql(&self, sql: &str) -> String {
        account::run(&mut self.psql(sql)).trim_end().to_owned()
    }

    /// Waits until a query prints this.
    pub fn wait_until(&self, sql: &str, printed: &str) {
        let mut last = Ok(String::new());
        let prints = within(|| {
            last = account::try_run(&mut self.psql(sql));
            last.as_ref().is_ok_and(|text| text.trim_end() == printed)
        });
        assert!(
            prints,
            "waited in vain until {sql} prints {printed}, not {last:?}. {}",
            self.log()
        );
    }

    /// Waits until a standby has everything that is committed here by now.
    pub fn wait_until_followed(&self, standby: &Self) {
        let here = self.sql("SELECT pg_current_wal_lsn()");
        standby.wait_until(&format!("SELECT pg_last_wal_replay_lsn() >= '{here}'"), "t");
    }

    /// From now on commits wait for a standby.
    pub fn wait_for_standby(&self) {
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        self.wait_until("SELECT sync_state FROM pg_stat_replication", "sync");
    }

    /// Makes a standby the primary, and waits until it takes writes.
    pub fn promote(&self) {
        account::run(
            account::command(&self.bin.join("pg_ctl"))
                .args(["promote", "--wait", "--silent", "--pgdata"])
                .arg(self.data())
                .current_dir(self.folder.path()),
        );
    }

    /// Stops the process that writes the log of changes in the background: until the server ends, a commit that waits for
    /// nothing is in its memory only.
    pub fn stop_wal_writer(&self) {
        let mut found = 0;
        for (pid, line) in self.children() {
            if line.contains("walwriter") {
                family::signal(pid, Signal::STOP);
                found += 1;
            }
        }
        assert_eq!(found, 1, "the server has one walwriter");
    }

    /// Ends it with all its processes, at one moment and without a warning.
    pub fn kill(&mut self) {
        let Some(process) = self.process.take() else { return };
        // One that is stopped cannot see its children die and start them again.
        process.signal(Signal::STOP);
        let children = family::children(process.id());
        for (pid, _) in &children {
            family::signal(*pid, Signal::KILL);
        }
        family::forget_clock(process.id());
        drop(process);
        // Those that are left would keep it from starting again.
        within(|| children.iter().all(|(pid, _)| !family::runs(*pid)));
    }

    /// Starts it again, with the data that it has kept.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// Stops all its processes in their tracks: connections stay open, the kernel takes new ones, and nothing is answered.
    pub fn pause(&self) {
        let Some(process) = &self.process else { return };
        process.signal(Signal::STOP);
        for (pid, _) in self.children() {
            family::signal(pid, Signal::STOP);
        }
    }

    fn launch(&mut self) {
        let mut command = account::command_with(&self.variables, &self.bin.join("postgres"));
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.number.to_string()])
            // No socket file: nobody needs one, and its path may be too long.
            .args([
                "-k",
                "",
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "logging_collector=off",
            ])
            .args([
                "-c",
                "fsync=off",
                "-c",
                "full_page_writes=off",
                "-c",
                "shared_buffers=32MB",
            ])
            // In the folder, which goes with the server also when that was killed.
            .args(["-c", "dynamic_shared_memory_type=mmap"])
            .current_dir(self.folder.path());
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let log = self.folder.path().join("console.log");
        self.process = Some(Process::start("PostgreSQL", command, log));
        self.wait_until("SELECT 1", "1");
    }

    /// The end of its log.
    fn log(&self) -> String {
        self.process.as_ref().map_or_else(String::new, Process::tail)
    }

    fn children(&self) -> Vec<(u32, String)> {
        let process = self.process.as_ref().expect("the server runs");
        family::children(process.id())
    }

    fn psql(&self, sql: &str) -> std::process::Command {
        let mut psql = account::command(&self.bin.join("psql"));
        psql.args(["-XAtqc", sql])
            .arg(self.url())
            .current_dir("/")
            .env("PGCONNECT_TIMEOUT", "5");
        psql
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        // A server that was killed leaves a piece of shared memory behind, whose number is in this file.
        let left = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(number) = left.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
            let _ = account::try_run(std::process::Command::new("ipcrm").args(["-m", number]));
        }
    }
}

/// Waits until something is so; `false` when it is not after a time that is generous, as the machine may be compiling.
pub(super) fn within(mut so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !so() {
        if began.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
