//! Parts: measurements that run in a separate process, so that the programs of two revisions can take turns.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::Group;
use crate::core::{drain, sqlite};

/// A measurement that can be compared with another revision. Its name is a protocol between revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    #[value(name = "postgres_drain")]
    PostgresDrain,
    #[value(name = "sqlite_drain")]
    SqliteDrain,
}

/// How to get the same rate from programs of revisions without parts: from the progress line of a figure.
pub(crate) struct Earlier {
    pub(crate) group: &'static str,
    /// The figure whose first round is the part.
    pub(crate) figure: &'static str,
    /// The text before the rate in the progress line of the first round.
    pub(crate) line: &'static str,
}

impl Part {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PostgresDrain => "postgres_drain",
            Self::SqliteDrain => "sqlite_drain",
        }
    }

    /// The figure that compares it with another revision.
    pub(crate) fn figure(self) -> String {
        format!("{}_vs_revision", self.name())
    }

    /// Whether a run of this group includes it.
    pub(crate) fn is_in(self, group: Group) -> bool {
        match self {
            Self::PostgresDrain | Self::SqliteDrain => matches!(group, Group::Core),
        }
    }

    /// Whether it writes to the PostgreSQL of the run.
    pub(crate) fn uses_postgres(self) -> bool {
        match self {
            Self::PostgresDrain => true,
            Self::SqliteDrain => false,
        }
    }

    /// How many messages it drains.
    pub(crate) fn messages(self) -> u64 {
        match self {
            Self::PostgresDrain => drain::BACKLOG,
            Self::SqliteDrain => sqlite::BACKLOG,
        }
    }

    pub(crate) fn earlier(self) -> Earlier {
        match self {
            Self::PostgresDrain => Earlier {
                group: "core",
                figure: "postgres_drain_vs_raw_delete",
                line: "drain, round 1: lanes ",
            },
            Self::SqliteDrain => Earlier {
                group: "core",
                figure: "sqlite_drain_vs_row_lease",
                line: "sqlite, round 1: lanes ",
            },
        }
    }

    /// Measures it once, in this process.
    pub(crate) async fn measure(self) -> Result<Value> {
        let rate = match self {
            Self::PostgresDrain => drain::lanes().await?,
            Self::SqliteDrain => sqlite::lanes().await?,
        };
        Ok(json!({ "part": self.name(), "messages": self.messages(), "rate": rate }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_on_the_command_line_is_the_name_in_the_answer() {
        for part in Part::all() {
            assert_eq!(Part::from_str(part.name(), false), Ok(*part));
        }
    }
}
