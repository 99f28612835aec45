//! Results of started work.

use sendoff::Result;
use sendoff::store::{BlockedKey, Heartbeat, Lane, LaneGrant, OwnerId, Page, Reader};
use tokio::time::Instant;

use super::publish::Published;
use super::settle::Written;
use crate::dispatcher::{Decided, Ticket};
use crate::plan::SinkIndex;

pub(super) enum Event {
    Beat {
        sent: Instant,
        beat: Result<Heartbeat>,
        evicted: Result<()>,
    },
    /// The relay registered again under another owner id.
    Anew {
        sent: Instant,
        /// Former owner ids that the store knows to belong to a live relay.
        deregistered: Vec<OwnerId>,
        beat: Result<Heartbeat>,
    },
    Deregistered {
        owner: OwnerId,
        deregistered: Result<()>,
    },
    Acquired(Result<(Vec<LaneGrant>, Vec<BlockedKey>)>),
    Disowned(Result<()>),
    Released(Vec<Lane>, Result<()>),
    Read {
        reader: Box<dyn Reader>,
        page: Result<Page>,
    },
    Published {
        sink: SinkIndex,
        tickets: Vec<Ticket>,
        begun: Instant,
        published: Published,
    },
    Settled(Decided, Written),
    /// A group was recorded, or with `void`, the end of the group of this lane.
    Quarantined {
        void: Option<Lane>,
        noted: Result<()>,
    },
    Cleared(Vec<Lane>, Result<()>),
    Swept(Result<u64>),
    Rechecked {
        begun: Instant,
        lanes: Vec<Lane>,
        blocked: Result<Vec<BlockedKey>>,
    },
    Paused {
        asked: Instant,
        paused: Result<Vec<(String, String)>>,
    },
    /// Whether there is more.
    Cleaned(Result<bool>),
    Figures(Result<()>),
}
