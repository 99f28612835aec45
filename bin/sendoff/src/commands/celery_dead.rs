//! `sendoff celery-dead`: the dead letters of django-celery-outbox.

use std::time::Duration;

use sendoff::{Error, ErrorKind};
use serde_json::json;

use super::celery_relay::open;
use crate::config::parse_duration;
use crate::exit::{Done, Exit};
use crate::session::Session;

/// Bring dead letters of django-celery-outbox back, or delete old ones
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Bring dead letters back, as rows that were never tried
    Replay {
        /// Their ids in celery_outbox_dead_letter
        ids: Vec<i64>,
        /// All of them
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// At most so many, the oldest first
        #[arg(long, value_name = "ROWS", default_value_t = u32::MAX, hide_default_value = true)]
        limit: u32,
    },
    /// Delete dead letters that died long ago
    Purge {
        /// How long ago, such as 30d
        #[arg(long, value_name = "AGE", value_parser = parse_duration)]
        older_than_dead: Duration,
    },
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let outbox = open(&session.config()?, session, None)?;
    let (verb, done) = match args.command {
        Command::Replay { ids, all, limit } => {
            if ids.is_empty() && !all {
                return Err(Error::new(ErrorKind::Invalid, "no dead letters are named")
                    .because("without an id all of them would come back")
                    .next_step("give their ids, or say --all")
                    .into());
            }
            let replayed = outbox.replay((!all).then_some(ids.as_slice()), limit).await?;
            if replayed == 0 && !all {
                return Err(Error::new(ErrorKind::NotFound, "none of these is a dead letter")
                    .because("celery_outbox_dead_letter has no such rows")
                    .next_step("look at the table for their ids")
                    .into());
            }
            ("replayed", replayed)
        }
        Command::Purge { older_than_dead } => ("purged", outbox.purge(older_than_dead).await?),
    };
    if session.output.json {
        session.output.json(&json!({verb: done}))?;
    } else {
        session.output.line(&format!("{done} {verb}"))?;
    }
    Ok(Exit::Ok)
}
