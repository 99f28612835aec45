//! What the program says about its own doing: log lines on standard error.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Level {
    /// Nothing.
    Off,
    /// What needs somebody.
    Error,
    /// What may need somebody.
    Warn,
    /// What happens.
    Info,
    /// How it happens.
    Debug,
    /// Everything.
    Trace,
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Human,
    /// An object a line, for programs.
    Json,
}

impl Level {
    /// So many levels more.
    pub(crate) fn raised(self, by: u8) -> Self {
        const ALL: [Level; 6] = [
            Level::Off,
            Level::Error,
            Level::Warn,
            Level::Info,
            Level::Debug,
            Level::Trace,
        ];
        let at = usize::from(by) + self as usize;
        ALL[at.min(ALL.len() - 1)]
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

/// Starts logging. A second call changes nothing.
pub(crate) fn start(level: Level, format: Format, color: bool) {
    // Database drivers log statements with their values at the lower levels, and so the payloads of messages: of
    // anybody but ourselves only warnings are told.
    let ours = level.filter();
    // This driver logs every connection that it loses as an error; the relay logs that the sink is down, once.
    let lapin = if ours >= LevelFilter::DEBUG {
        LevelFilter::WARN
    } else {
        LevelFilter::OFF
    };
    let filter = Targets::new()
        .with_default(ours.min(LevelFilter::WARN))
        .with_target("lapin", lapin)
        .with_target("sendoff", ours);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    // An error here says only that logging has been started already.
    let _ = match format {
        Format::Human => registry.with(lines.with_ansi(color).with_target(false)).try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_raises_the_level_up_to_the_last() {
        assert_eq!(Level::Warn.raised(0), Level::Warn);
        assert_eq!(Level::Warn.raised(1), Level::Info);
        assert_eq!(Level::Warn.raised(200), Level::Trace);
    }
}
