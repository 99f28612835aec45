//! `sendoff lanes`: lanes and their relays.

use sendoff_operate::PageView;

use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;

/// Show for each lane the relay that holds it, the end of the lease, and the number of ready messages
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args, session: &Session) -> Done {
    let lanes = session.operator().await?.lanes().await?;
    if session.output.json {
        session.output.json(&PageView::whole(lanes))?;
        return Ok(Exit::Ok);
    }
    let rows = lanes.into_iter().map(|lane| {
        let relay = match lane.relay {
            Some(relay) => Field::from(relay),
            None => Field::toned("none", Tone::Warning),
        };
        let crashes = Field::toned(
            lane.crashes.to_string(),
            if lane.crashes > 0 { Tone::Bad } else { Tone::Plain },
        );
        vec![
            lane.lane.into(),
            relay,
            lane.until.unwrap_or_default().into(),
            lane.ready.into(),
            crashes,
            lane.epoch.into(),
        ]
    });
    session
        .output
        .table(&["lane", "relay", "until", "ready", "crashes", "epoch"], rows.collect())?;
    Ok(Exit::Ok)
}
