//! `sendoff celery-dead`: the dead letters of django-celery-outbox.

use std::time::Duration;

use sendoff::{Error, ErrorKind};
use sendoff_store_django_celery::{DjangoOutbox, Purge};
use serde_json::json;

use super::celery_relay::open;
use crate::config::parse_duration;
use crate::exit::{Done, Exit, Failure};
use crate::session::Session;

/// Retry or delete dead letters of django-celery-outbox
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Retry dead letters; attempts are reset to 0
    #[command(visible_alias = "replay")]
    Retry {
        /// Ids of rows in celery_outbox_dead_letter
        ids: Vec<i64>,
        /// Retry all dead letters (instead of ids)
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Maximum number of dead letters, oldest first
        #[arg(long, value_name = "ROWS", default_value_t = u32::MAX, hide_default_value = true)]
        limit: u32,
    },
    /// Delete old dead letters
    Purge(PurgeArgs),
}

#[derive(Debug, clap::Args)]
struct PurgeArgs {
    /// Only dead letters that died more than this long ago, such as 30d
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    older_than_dead: Option<Duration>,
    /// Only tasks emitted more than this long ago
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    older_than_created: Option<Duration>,
    /// Only tasks whose name matches; * matches any text, ? one character
    #[arg(long, value_name = "GLOB")]
    task_name: Option<String>,
    /// Only count what would be deleted; change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let outbox = open(&session.config()?, session, None)?;
    match args.command {
        Command::Retry { ids, all, limit } => {
            if ids.is_empty() && !all {
                return Err(Error::new(ErrorKind::Invalid, "no dead letters are selected")
                    .because("without an id, all dead letters would be retried")
                    .next_step("give the ids of dead letters, or use --all")
                    .into());
            }
            let retried = outbox.retry_dead((!all).then_some(ids.as_slice()), limit).await?;
            if retried == 0 && !all {
                return Err(Error::new(ErrorKind::NotFound, "none of these is a dead letter")
                    .because("celery_outbox_dead_letter has no rows with these ids")
                    .next_step("look up the column `id` in celery_outbox_dead_letter")
                    .into());
            }
            if session.output.json {
                session.output.json(&json!({"retried": retried}))?;
            } else {
                session.output.line(&format!("{retried} retried"))?;
            }
        }
        Command::Purge(args) => purge(args, &outbox, session).await?,
    }
    Ok(Exit::Ok)
}

async fn purge(args: PurgeArgs, outbox: &DjangoOutbox, session: &Session) -> Result<(), Failure> {
    if args.older_than_dead.is_none() && args.older_than_created.is_none() {
        return Err(Error::new(ErrorKind::Invalid, "no age is given")
            .because("without an age, all dead letters would be deleted")
            .next_step("give --older-than-dead AGE or --older-than-created AGE, such as 30d")
            .into());
    }
    let which = Purge {
        older_than_dead: args.older_than_dead,
        older_than_created: args.older_than_created,
        task_name: args.task_name,
    };
    let (verb, tasks) = match args.dry_run {
        true => ("would_purge", outbox.purgeable(&which).await?),
        false => ("purged", outbox.purge(&which).await?),
    };
    let all: u64 = tasks.values().sum();
    if session.output.json {
        session.output.json(&json!({verb: all, "tasks": tasks}))?;
        return Ok(());
    }
    let said = if args.dry_run { "would be purged" } else { "purged" };
    session.output.line(&format!("{all} {said}"))?;
    for (name, count) in tasks {
        session.output.line(&format!("  {count} of {name}"))?;
    }
    Ok(())
}
