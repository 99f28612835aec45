//! What comes back from work that was started.

use sendoff::Result;
use sendoff::store::{BlockedKey, Heartbeat, Lane, LaneGrant, OwnerId, Page, Reader};
use tokio::time::Instant;

use crate::desk::{Decided, Ticket};
use crate::plan::SinkIndex;
use crate::publish::Published;
use crate::settle::Written;

pub(super) enum Event {
    Beat {
        sent: Instant,
        beat: Result<Heartbeat>,
        evicted: Result<()>,
    },
    /// The relay began anew under another name.
    Anew {
        sent: Instant,
        /// Former names that the store knows to be of a relay that lives.
        retired: Vec<OwnerId>,
        beat: Result<Heartbeat>,
    },
    Retired {
        owner: OwnerId,
        retired: Result<()>,
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
    /// A group was noted, or `void`: that the group of this lane is done.
    Suspected {
        void: Option<Lane>,
        noted: Result<()>,
    },
    Absolved(Vec<Lane>, Result<()>),
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
}
