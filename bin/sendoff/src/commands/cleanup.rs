//! `sendoff cleanup`: deletes old rows.

use std::time::Duration;

use sendoff::store::Retention;
use sendoff::{Error, ErrorKind};

use crate::commands::confirm;
use crate::exit::{Done, Exit};
use crate::progress::Counting;
use crate::session::Session;

/// Delete old delivered messages, dead letters, idempotency keys and inbox records, in batches
#[derive(Debug, clap::Args)]
#[command(after_help = "Relays clean up regularly, following the retention settings in [database].")]
pub(crate) struct Args {
    /// Delete messages that were delivered more than this long ago, such as 7d
    #[arg(long, value_name = "AGE", value_parser = crate::config::parse_duration)]
    delivered: Option<Duration>,
    /// Delete dead letters that died more than this long ago, such as 90d; those that block a key are kept
    #[arg(long, value_name = "AGE", value_parser = crate::config::parse_duration)]
    dead: Option<Duration>,
    /// Delete idempotency keys whose deduplication window has passed
    #[arg(long)]
    dedup: bool,
    /// Delete inbox records older than this, such as 30d; a copy that arrives later counts as new
    #[arg(long, value_name = "AGE", value_parser = crate::config::parse_duration)]
    inbox: Option<Duration>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let retention = Retention {
        delivered: args.delivered,
        dead: args.dead,
        dedup: args.dedup,
        inbox: args.inbox,
    };
    if retention == Retention::default() {
        return Err(Error::new(ErrorKind::Invalid, "nothing is selected to clean up")
            .next_step("give --delivered AGE, --dead AGE, --dedup or --inbox AGE")
            .into());
    }
    if args.dead.is_some() && !args.yes && !confirm::confirmed("Delete old dead letters permanently?")? {
        session.note("nothing was changed");
        return Ok(Exit::Failure);
    }
    let operator = session.operator().await?;
    // Needed only for the bar; counting may be slow.
    let count = if Counting::is_shown(session) {
        Some(operator.clean_count(&retention).await?)
    } else {
        None
    };
    let mut counting = Counting::start(session, "deleted", count);
    let cleaned = operator.clean_up(&retention, &mut |done| counting.set(done)).await;
    counting.finish();
    let cleaned = cleaned?;
    if session.output.json {
        session.output.json(&cleaned)?;
    } else {
        session
            .output
            .line(&format!("{} deleted, {} remaining", cleaned.deleted, cleaned.remaining))?;
    }
    Ok(Exit::Ok)
}
