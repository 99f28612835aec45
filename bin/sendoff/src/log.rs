//! Log lines on standard error.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Level {
    /// Log nothing.
    Off,
    /// Log problems that need action.
    Error,
    /// Log problems that may need action, too.
    Warn,
    /// Log normal events, too.
    Info,
    /// Log details, too.
    Debug,
    /// Log everything.
    Trace,
}

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Lines for people.
    Human,
    /// One JSON object per line, for programs.
    Json,
}

impl Level {
    /// This level raised by `by` levels.
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
    // At the lower levels, database drivers log statements with their values, which include payloads. So other
    // crates log warnings and errors only.
    let ours = level.filter();
    // This driver logs every lost connection as an error; the relay logs once that the sink is down.
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
    // An error here only means that logging has already started.
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
