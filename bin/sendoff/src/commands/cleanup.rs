//! `sendoff cleanup`: what is old enough goes.

use std::time::Duration;

use sendoff::store::Windows;
use sendoff::{Error, ErrorKind};

use crate::commands::confirm;
use crate::exit::{Done, Exit};
use crate::progress::Counting;
use crate::session::Session;

/// Delete delivered messages and dead letters that are older than a window, in small batches
#[derive(Debug, clap::Args)]
#[command(after_help = "Relays do the regular part by themselves, by the retention in [database].")]
pub(crate) struct Args {
    /// Delivered messages older than this, such as 7d
    #[arg(long, value_name = "AGE", value_parser = crate::config::parse_duration)]
    delivered: Option<Duration>,
    /// Dead letters older than this, such as 90d; those that block a key stay
    #[arg(long, value_name = "AGE", value_parser = crate::config::parse_duration)]
    dead: Option<Duration>,
    /// Idempotency keys whose window has passed
    #[arg(long)]
    dedup: bool,
    /// Notes of consumers older than this, such as 30d: copies that arrive later count as new
    #[arg(long, value_name = "AGE", value_parser = crate::config::parse_duration)]
    inbox: Option<Duration>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let windows = Windows {
        delivered: args.delivered,
        dead: args.dead,
        dedup: args.dedup,
        inbox: args.inbox,
    };
    if windows == Windows::default() {
        return Err(Error::new(ErrorKind::Invalid, "nothing is named to be cleaned up")
            .next_step("give --delivered AGE, --dead AGE, --dedup or --inbox AGE")
            .into());
    }
    if args.dead.is_some() && !args.yes && !confirm::confirmed("Dead letters that old are gone for good. Delete them?")?
    {
        session.note("nothing was changed");
        return Ok(Exit::Failure);
    }
    let operator = session.operator().await?;
    // Only for the bar: counting may take a while.
    let count = if Counting::is_shown(session) {
        Some(operator.clean_count(&windows).await?)
    } else {
        None
    };
    let mut counting = Counting::start(session, "deleted", count);
    let cleaned = operator.clean_up(&windows, &mut |done| counting.set(done)).await;
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
