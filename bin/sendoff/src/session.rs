//! What a command works with: the flags, the configuration, the store, and where to print.

use std::io::{self, Write};

use sendoff::{ErrorKind, Result};
use sendoff_operate::{ItemOperator, Operator};

use crate::cli::{Command, Global};
use crate::config::{Config, LogConfig, Override};
use crate::log::{self, Format, Level};
use crate::output::{Output, Paint};
use crate::store::Store;

/// The configuration file that is read when none is named.
pub(crate) const CONFIG_FILE: &str = "sendoff.toml";

/// One run of the program.
pub(crate) struct Session {
    pub(crate) global: Global,
    pub(crate) output: Output,
    /// The colours that standard error takes.
    pub(crate) stderr: Paint,
}

impl Session {
    /// Starts logging, too, except for a relay, whose configuration says how.
    pub(crate) fn new(global: Global, command: &Command) -> Self {
        let session = Self {
            output: Output::new(global.json, global.color),
            stderr: Paint::of_stderr(global.color),
            global,
        };
        match command {
            Command::Relay(_) | Command::CeleryRelay(_) => {}
            // Relays are killed there on purpose: their complaints would only hide the view.
            Command::Demo(_) => session.start_log(Level::Off, Format::Human),
            _ => session.start_log(Level::Warn, Format::Human),
        }
        session
    }

    /// Starts logging as the configuration says, unless flags say otherwise.
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

    /// Whether nobody has asked for log lines.
    pub(crate) fn is_quiet(&self) -> bool {
        self.global.verbose == 0 && self.global.log_level.is_none()
    }

    /// Whether lines are logged also when nothing is wrong.
    pub(crate) fn logs_what_happens(&self) -> bool {
        self.log_level(Level::Warn) > Level::Warn
    }

    fn log_level(&self, default: Level) -> Level {
        self.global.log_level.unwrap_or(default).raised(self.global.verbose)
    }

    /// Whether errors are told with what caused them.
    pub(crate) fn shows_sources(&self) -> bool {
        self.global.verbose > 0
    }

    /// Says something to the person who runs it, beside the data.
    pub(crate) fn note(&self, text: &str) {
        // Nobody has to hear it.
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

    /// The store. Nothing is asked of the database yet.
    pub(crate) fn store(&self) -> Result<Store> {
        Store::open(self.config()?.database_of(self.global.source.as_deref())?)
    }

    /// The store, once its tables are known to be what this program needs.
    pub(crate) async fn ready_store(&self) -> Result<Store> {
        let store = self.store()?;
        match store.migrate.check_schema().await {
            // Roles that only emit or look may be kept from the ledger: what they do next will tell.
            Err(error) if error.kind() != ErrorKind::Denied => Err(error),
            Err(_) | Ok(()) => Ok(store),
        }
    }

    /// An operator in the name of whoever runs this.
    pub(crate) async fn operator(&self) -> Result<Operator> {
        Ok(Operator::new(self.ready_store().await?.operate, who()))
    }

    /// The same, with one for failed items.
    pub(crate) async fn operators(&self) -> Result<(Operator, ItemOperator)> {
        let store = self.ready_store().await?;
        Ok((
            Operator::new(store.operate, who()),
            ItemOperator::new(store.work, who()),
        ))
    }
}

/// Whoever runs this, for the audit.
fn who() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    format!("{}@{}", user.as_deref().unwrap_or("somebody"), host())
}

/// What this machine is called.
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
