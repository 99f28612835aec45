//! The state of the loop, in parts. A part that depends on the lease, or on the history of the database, is replaced as a whole
//! when that is lost: see `start_anew` and `history_changed`.
//!
//! | part | after a lost lease | after another history |
//! |---|---|---|
//! | [`UnderWay`] | new | stays |
//! | [`Holding`] | new | new |
//! | [`Reading`] | new, with a new reader | stays: its reader notices the change |
//! | [`Registration`] | stays, with another owner id | stays |
//! | [`Pace`], [`Pauses`], [`Others`], [`Janitors`], [`Ending`] | stay | stay |

use std::time::Duration;

use rustc_hash::FxHashMap;
use sendoff::Error;
use sendoff::store::{Lane, LaneGrant, OwnerId, Reader, RelayCard, Routes, Row};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Owners;
use super::event::Event;
use super::hand_over::HandOver;
use super::janitors::RECHECK_PAUSE;
use super::running::BUSY_PAUSE;
use crate::settings::Settings;

/// How many former owner ids are kept of a relay that lost its lease repeatedly.
const FORMER: usize = 64;

/// Who the relay is for the store, and for how long.
pub(super) struct Registration {
    pub(super) owner: OwnerId,
    pub(super) owners: Owners,
    pub(super) card: RelayCard,
    /// Owner ids under which this relay lost its lease, until the store knows that it is alive.
    pub(super) former: Vec<OwnerId>,
    /// Until when this relay may publish, by its own monotonic clock.
    pub(super) lease: watch::Sender<Instant>,
    pub(super) next_beat: Instant,
    /// When the last successful heartbeat was sent.
    pub(super) beat_sent: Instant,
}

impl Registration {
    /// The lease is lost: the relay takes another owner id.
    pub(super) fn change_owner(&mut self) {
        let former = std::mem::replace(&mut self.owner, (self.owners)());
        self.former.push(former);
        if planted!(LeaseLostIsCrash) {
            self.former.clear();
        }
        if self.former.len() > FORMER {
            self.former.remove(0);
        }
        self.lease.send_replace(Instant::now());
    }
}

/// Work that was started and has not ended. Dropping it ends all of it.
pub(super) struct UnderWay {
    pub(super) tasks: JoinSet<Event>,
    /// How many batches are with each sink.
    pub(super) with_sink: Vec<usize>,
    pub(super) settle: bool,
    pub(super) beat: bool,
    pub(super) deregister: bool,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) pauses: bool,
    pub(super) quarantine: bool,
    pub(super) sweep: bool,
    pub(super) recheck: bool,
    pub(super) clean: bool,
}

impl UnderWay {
    pub(super) fn nothing(sinks: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            with_sink: vec![0; sinks],
            settle: false,
            beat: false,
            deregister: false,
            acquire: false,
            release: false,
            pauses: false,
            quarantine: false,
            sweep: false,
            recheck: false,
            clean: false,
        }
    }
}

/// What is not certain about the lanes that are held.
#[derive(Default)]
pub(super) struct Holding {
    /// Whether this relay may hold lanes that it does not know of, because an answer was lost.
    pub(super) unsure: bool,
    /// Whether lanes are given back to be leased again.
    pub(super) anew: bool,
    /// The lanes being acquired may have been leased in the old history: the new one may not know of it.
    pub(super) void_grants: bool,
    /// The lanes being released may have been released in the old history: the new one may not know of it.
    pub(super) void_release: bool,
}

impl Holding {
    /// In another history, lanes that this relay gave back long ago may still belong to it.
    pub(super) fn in_another_history(under_way: &UnderWay) -> Self {
        Self {
            unsure: true,
            anew: true,
            void_grants: under_way.acquire,
            void_release: under_way.release,
        }
    }
}

/// The reader, and its current or last read.
pub(super) struct Reading {
    /// `None` while a read is under way.
    pub(super) reader: Option<Box<dyn Reader>>,
    /// A heartbeat has noticed another history. The reader will notice it, too.
    pub(super) is_behind: bool,
    /// A page with a message that has no route here and may have one at another relay.
    pub(super) unsure_page: Option<Vec<Row>>,
    /// What the reader is to know before it reads again.
    pub(super) gained: Vec<LaneGrant>,
    pub(super) lost: Vec<Lane>,
    /// When the read began.
    pub(super) begun: Instant,
    /// Whether it covers both tables.
    pub(super) everywhere: bool,
    pub(super) ready: bool,
    /// Whether it found nothing.
    pub(super) found_nothing: bool,
}

impl Reading {
    pub(super) fn new(reader: Box<dyn Reader>, now: Instant) -> Self {
        Self {
            reader: Some(reader),
            is_behind: false,
            unsure_page: None,
            gained: Vec::new(),
            lost: Vec::new(),
            begun: now,
            everywhere: false,
            ready: false,
            found_nothing: false,
        }
    }
}

/// When to read, and how much.
pub(super) struct Pace {
    pub(super) next_poll: Instant,
    pub(super) poll_pause: Duration,
    pub(super) next_due: Instant,
    pub(super) row_bytes: usize,
    /// Which part of a page is asked for: all of it, unless reads failed.
    pub(super) page_part: usize,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            next_poll: now,
            poll_pause: BUSY_PAUSE,
            next_due: now,
            row_bytes: 16 << 10,
            page_part: 1,
        }
    }
}

/// What operators paused.
#[derive(Default)]
pub(super) struct Pauses {
    /// Ask what is paused.
    pub(super) ask_soon: bool,
    /// Nothing is read before this.
    pub(super) known: bool,
}

/// Other relays, and what is left to them.
pub(super) struct Others {
    pub(super) own: Routes,
    /// Routes of other relays, by the hash of their configuration.
    pub(super) known: FxHashMap<String, Routes>,
    pub(super) hand_over: HandOver,
}

/// When background work is due.
pub(super) struct Janitors {
    pub(super) next_sweep: Instant,
    pub(super) next_recheck: Instant,
    pub(super) next_clean: Instant,
    /// How many rows were settled since cleaning began.
    pub(super) settled_meanwhile: usize,
}

impl Janitors {
    pub(super) fn new(settings: &Settings, now: Instant) -> Self {
        Self {
            next_sweep: now + settings.sweep,
            next_recheck: now + RECHECK_PAUSE,
            next_clean: now + settings.clean,
            settled_meanwhile: 0,
        }
    }
}

/// Whether the run ends, and how.
#[derive(Default)]
pub(super) struct Ending {
    /// Whether the first attempt to acquire lanes has ended.
    pub(super) settled_in: bool,
    /// The error that keeps a one-shot run from doing its work.
    pub(super) failure: Option<Error>,
    /// Until when it waits for sinks after the signal to stop.
    pub(super) stopping: Option<Instant>,
}
