//! A separate folder and database for a run of the program.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The variable that names the PostgreSQL server of the tests.
const POSTGRES: &str = "SENDOFF_TEST_POSTGRES_URL";
/// The variable that names the MySQL or MariaDB server of the tests.
const MYSQL: &str = "SENDOFF_TEST_MYSQL_URL";

/// A variable of the test environment.
pub(crate) fn test_variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with `cargo xtask test`"))
}

/// Where a test's outbox is.
#[derive(Clone)]
pub(crate) enum TestDatabase {
    Sqlite(PathBuf),
    Postgres { url: String, schema: String },
    Mysql { url: String, schema: String },
}

impl TestDatabase {
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres { url, .. } | Self::Mysql { url, .. } => url.clone(),
        }
    }

    /// The same outbox at another address.
    pub(crate) fn at(&self, url: impl Into<String>) -> Self {
        let mut place = self.clone();
        match &mut place {
            Self::Sqlite(_) => panic!("a file has no address"),
            Self::Postgres { url: known, .. } | Self::Mysql { url: known, .. } => *known = url.into(),
        }
        place
    }

    /// The section of the configuration.
    pub(crate) fn toml(&self) -> String {
        let schema = match self {
            Self::Sqlite(_) => String::new(),
            Self::Postgres { schema, .. } | Self::Mysql { schema, .. } => format!("schema = {schema:?}\n"),
        };
        format!("[database]\nurl = {:?}\n{schema}", self.url())
    }
}

/// A unique name.
fn new_schema() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    format!("cli_{}_{number}_{nanos}", std::process::id())
}

/// A folder, and a way to run the program in it.
pub(crate) struct Sandbox {
    folder: TempDir,
    pub(crate) place: TestDatabase,
    /// Whether the outbox is on a server that other tests use, too.
    is_shared: bool,
}

impl Sandbox {
    /// With an outbox in a SQLite file that does not exist yet.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = TestDatabase::Sqlite(folder.path().join("outbox.db"));
        Self::new(folder, place)
    }

    /// With an outbox in a PostgreSQL schema that does not exist yet.
    pub(crate) fn postgres() -> Self {
        let place = TestDatabase::Postgres {
            url: test_variable(POSTGRES),
            schema: new_schema(),
        };
        Self::new(tempfile::tempdir().unwrap(), place)
    }

    /// With an outbox in a MySQL database that does not exist yet.
    pub(crate) fn mysql() -> Self {
        let place = TestDatabase::Mysql {
            url: test_variable(MYSQL),
            schema: new_schema(),
        };
        Self::new(tempfile::tempdir().unwrap(), place)
    }

    /// With an outbox in a schema of the test's own server, which may be gone at the end.
    pub(crate) fn private(place: impl FnOnce(String) -> TestDatabase) -> Self {
        let mut sandbox = Self::new(tempfile::tempdir().unwrap(), place(new_schema()));
        sandbox.is_shared = false;
        sandbox
    }

    fn new(folder: TempDir, place: TestDatabase) -> Self {
        let sandbox = Self {
            folder,
            place,
            is_shared: true,
        };
        sandbox.configure("");
        sandbox
    }

    /// Creates the outbox's tables.
    pub(crate) fn migrated(self) -> Self {
        self.ok(["migrate"]);
        self
    }

    /// Writes `sendoff.toml`: the database, and `rest`.
    pub(crate) fn configure(&self, rest: &str) {
        self.write("sendoff.toml", &format!("{}\n{rest}", self.place.toml()));
    }

    /// Writes `sendoff.toml` with a file sink that gets everything.
    pub(crate) fn configure_file_sink(&self, rest: &str) -> PathBuf {
        let path = self.path("out.jsonl");
        self.configure(&format!(
            "{rest}\n[[sink]]\nname = \"out\"\ntype = \"file\"\npath = {path:?}\n[[route]]\nmatch = \"*\"\nto = [\"out\"]\n"
        ));
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The program, in the folder, without settings from the environment of the tests.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sendoff"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("SENDOFF_") || text.starts_with("OTEL_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .args(args);
        command
    }

    /// Runs it to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs it with something on standard input.
    pub(crate) fn run_with_input<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: &[u8]) -> Ran {
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs it and expects success.
    #[track_caller]
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    /// Runs it with `--json`, expects success, and reads what it printed.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.ok(args.iter().copied().chain(["--json"])).json()
    }

    /// Emits a message and returns its id.
    #[track_caller]
    pub(crate) fn emit(&self, args: &[&str]) -> String {
        let ran = self.ok(["emit"].into_iter().chain(args.iter().copied()));
        ran.out.trim().to_owned()
    }

    /// Runs SQL on the outbox's database, unchanged.
    pub(crate) fn run_script(&self, sql: &str) {
        match &self.place {
            TestDatabase::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            TestDatabase::Postgres { url, .. } => block_on(async {
                connect(url).await.batch_execute(sql).await.unwrap();
            }),
            TestDatabase::Mysql { url, .. } => run_on_mysql(url, sql),
        }
    }

    /// Runs SQL on the outbox's database, with the outbox's tables under their usual names.
    pub(crate) fn sql(&self, sql: &str) {
        match &self.place {
            TestDatabase::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            TestDatabase::Postgres { url, schema } => {
                let (url, sql) = (url.clone(), format!("SET search_path TO {schema}; {sql}"));
                block_on(async move { connect(&url).await.batch_execute(&sql).await.unwrap() });
            }
            TestDatabase::Mysql { url, schema } => run_on_mysql(url, &format!("USE {schema}; {sql}")),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.is_shared {
            return;
        }
        if let TestDatabase::Mysql { url, schema } = &self.place {
            run_on_mysql(url, &format!("DROP DATABASE IF EXISTS {schema}"));
        }
        if let TestDatabase::Postgres { url, schema } = &self.place {
            let (url, drop) = (url.clone(), format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
            // A test that fails may leave a relay behind that holds locks: the servers are private and end anyway.
            block_on(async move {
                let client = connect(&url).await;
                let _ = client.batch_execute("SET lock_timeout = '2s'").await;
                let _ = client.batch_execute(&drop).await;
            });
        }
    }
}

/// Runs a future on a new runtime, even from within another one.
pub(crate) fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(future)
        });
        thread.join().unwrap()
    })
}

fn run_on_mysql(url: &str, sql: &str) {
    use mysql_async::prelude::Queryable;
    block_on(async {
        let mut conn = mysql_async::Conn::from_url(url).await.unwrap();
        conn.query_drop(sql).await.unwrap();
        conn.disconnect().await.unwrap();
    });
}

/// A connection that runs in its own task.
pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one document on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Expects an error with this exit code that has what and next, each on its own line on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        for start in ["error: ", "next: "] {
            let found = lines.iter().filter(|line| line.starts_with(start)).count();
            assert_eq!(found, 1, "one line {start:?} in {self:?}");
        }
        for word in words {
            assert!(self.err.contains(word), "{word:?} in {self:?}");
        }
        assert!(
            !self.err.contains("panicked") && !self.err.contains("RUST_BACKTRACE"),
            "{self:?}"
        );
    }

    /// The same for an error that also has why.
    #[track_caller]
    pub(crate) fn fails_with_reason(&self, code: i32, words: &[&str]) {
        self.fails(code, words);
        assert!(self.err.lines().any(|line| line.starts_with("why: ")), "{self:?}");
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running program that is killed at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(&mut self, limit: Duration) -> std::process::ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < limit, "it did not end within {limit:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The JSON lines of a file; a last line that is being written is left out.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
