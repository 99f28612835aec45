//! `sendoff retry` and `sendoff reset`: waiting messages become due at once.

use sendoff::store::Hasten;
use sendoff::{Error, ErrorKind};
use sendoff_operate::Progress;

use crate::commands::bulk::{BulkArgs, Change};
use crate::exit::Done;
use crate::session::Session;

/// Which waiting messages.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Meant are messages that failed, that are parked, or whose sink is down. Those that are held behind \
                        another stay held. Scheduled ones are left alone unless they are named by their ids or by --scheduled."
)]
pub(crate) struct Args {
    #[command(flatten)]
    bulk: BulkArgs,
    /// Also scheduled messages, whose time has not come
    #[arg(long, help_heading = "Options")]
    scheduled: bool,
}

const DUE: Change = Change {
    things: "messages",
    done: "due",
    would: "would_be_due",
    question: |count| format!("Make {count} messages due at once?"),
    none: || {
        Error::new(ErrorKind::NotFound, "none of these messages waits for its time")
            .because("it is due already, held behind another, delivered or dead, or was never committed")
            .next_step("look with `sendoff show ID`")
    },
};

pub(crate) async fn run(args: Args, reset: bool, session: &Session) -> Done {
    let how = Hasten {
        reset,
        scheduled: args.scheduled,
    };
    let written = args.bulk.written(&DUE)?;
    let operator = session.operator().await?;
    let filter = operator.filter(&written).await?;
    let count = operator.hasten_count(&filter, how).await?;
    let act = async |progress: Progress<'_>| operator.hasten(&filter, how, progress).await;
    args.bulk.run(&DUE, count, session, act).await
}
