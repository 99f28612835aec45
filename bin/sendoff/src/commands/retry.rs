//! `sendoff retry`: make waiting messages due now.

use sendoff::store::RetryOptions;
use sendoff::{Error, ErrorKind};
use sendoff_operate::Progress;

use crate::commands::bulk::{BulkArgs, Change};
use crate::exit::Done;
use crate::session::Session;

/// Make waiting deliveries due now; attempts are kept unless --reset is given
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Acts on messages that failed, are parked, or are deferred because their sink is down. Blocked \
                  messages stay blocked. Scheduled messages are included only by id or with --scheduled."
)]
pub(crate) struct Args {
    #[command(flatten)]
    bulk: BulkArgs,
    /// Reset the number of failed attempts to 0
    #[arg(long, help_heading = "Options")]
    reset: bool,
    /// Include scheduled messages
    #[arg(long, help_heading = "Options")]
    scheduled: bool,
}

const DUE: Change = Change {
    things: "messages",
    done: "retried",
    would: "would_retry",
    question: |count| format!("Make {count} messages due now?"),
    none: || {
        Error::new(ErrorKind::NotFound, "none of these messages can be retried now")
            .because("these messages are due already, blocked, delivered or dead, or do not exist")
            .next_step("check the status with `sendoff show ID`")
    },
};

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let how = RetryOptions {
        reset: args.reset,
        scheduled: args.scheduled,
    };
    let written = args.bulk.written(&DUE)?;
    let operator = session.operator().await?;
    let selected = args.bulk.selected(&written, &operator, session).await?;
    let count = selected.retry_count(how).await?;
    let act = async |progress: Progress<'_>| selected.retry(how, progress).await;
    args.bulk.run(&DUE, count, session, act).await
}
