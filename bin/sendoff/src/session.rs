//! What a command works with: flags, configuration, store and output.

use std::io::{self, Write};

use sendoff::{ErrorKind, Result};
use sendoff_operate::{JobOperator, Operator};

use crate::cli::{Command, Global};
use crate::config::{Config, LogConfig, Override};
use crate::log::{self, Format, Level};
use crate::output::{Output, Paint};
use crate::store::Store;

/// The default configuration file.
pub(crate) const CONFIG_FILE: &str = "sendoff.toml";

/// One run of the program.
pub(crate) struct Session {
    pub(crate) global: Global,
    pub(crate) output: Output,
    /// Colours for standard error.
    pub(crate) stderr: Paint,
}

impl Session {
    /// Also starts logging, except for a relay, whose configuration sets the log.
    pub(crate) fn new(global: Global, command: &Command) -> Self {
        let session = Self {
            output: Output::new(global.json, global.color),
            stderr: Paint::of_stderr(global.color),
            global,
        };
        match command {
            Command::Relay(_) | Command::CeleryRelay(_) => {}
            // The demo kills relays on purpose; their log lines would hide the view.
            Command::Demo(_) => session.start_log(Level::Off, Format::Human),
            _ => session.start_log(Level::Warn, Format::Human),
        }
        session
    }

    /// Starts logging as configured; flags win.
    pub(crate) fn start_configured_log(&self, config: LogConfig) {
        self.start_log(config.level, config.format);
    }

    fn start_log(&self, level: Level, format: Format) {
        log::start(
            self.log_level(level),
            self.global.log_format.unwrap_or(format),
            self.stderr.is_on(),
        );
    }

    /// Whether no flag asks for log lines.
    pub(crate) fn is_quiet(&self) -> bool {
        self.global.verbose == 0 && self.global.log_level.is_none()
    }

    /// Whether normal events are logged, not only problems.
    pub(crate) fn logs_what_happens(&self) -> bool {
        self.log_level(Level::Warn) > Level::Warn
    }

    fn log_level(&self, default: Level) -> Level {
        self.global.log_level.unwrap_or(default).raised(self.global.verbose)
    }

    /// Whether errors are printed with their causes.
    pub(crate) fn shows_sources(&self) -> bool {
        self.global.verbose > 0
    }

    /// Prints a note to standard error, separate from the data.
    pub(crate) fn note(&self, text: &str) {
        // A note may get lost.
        let _ = writeln!(io::stderr().lock(), "{}", self.stderr.dim(text));
    }

    /// The configuration: file, environment and flags.
    pub(crate) fn config(&self) -> Result<Config> {
        let flags: Vec<Override> = self
            .global
            .database
            .iter()
            .map(|url| Override::flag("--database", "database.url", url))
            .collect();
        Config::load(self.global.config.as_deref(), std::env::vars_os(), &flags)
    }

    /// The store. The database is not queried yet.
    pub(crate) fn store(&self) -> Result<Store> {
        Store::open(self.config()?.database_of(self.global.source.as_deref())?)
    }

    /// The store, after a check that its schema is what this program needs.
    pub(crate) async fn ready_store(&self) -> Result<Store> {
        let store = self.store()?;
        match store.migrate.check_schema().await {
            // Roles that only emit or read may lack access to the migration table; a wrong schema then fails later.
            Err(error) if error.kind() != ErrorKind::Denied => Err(error),
            Err(_) | Ok(()) => Ok(store),
        }
    }

    /// An operator that acts as the current user.
    pub(crate) async fn operator(&self) -> Result<Operator> {
        Ok(Operator::new(self.ready_store().await?.operate, who()))
    }

    /// The same, plus an operator for jobs.
    pub(crate) async fn operators(&self) -> Result<(Operator, JobOperator)> {
        let store = self.ready_store().await?;
        Ok((Operator::new(store.operate, who()), JobOperator::new(store.work, who())))
    }
}

/// The current user and host, for the audit.
fn who() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    format!("{}@{}", user.as_deref().unwrap_or("unknown"), host())
}

/// The host name.
pub(crate) fn host() -> String {
    #[cfg(unix)]
    {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
    #[cfg(not(unix))]
    {
        std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
    }
}
