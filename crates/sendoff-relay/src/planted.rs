//! Bugs on purpose, to see whether the simulator finds them.
//!
//! They are in builds with the feature `planted` only, which nothing but the tests of `sendoff-testkit` asks for. Even there
//! none is chosen unless a test does so, for its own thread.

use std::cell::Cell;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Planted {
    /// The store settles for relays that do not hold the lane.
    FenceDropped,
    /// The store settles whatever message has the number.
    SettlesByNumber,
    /// The store deletes a range where rows are named.
    DeletesRange,
    /// The reader does not come back for transactions that commit late.
    FloorDoesNotLag,
    /// The store never takes lanes from relays that vanished.
    NeverEvicts,
    /// The store never lets held rows go.
    HeldForEver,
    /// The reader returns due rows that are in hand.
    DueTwice,
    /// The store judges leases by a clock that nobody sets.
    HostClock,
    /// Dead letters that should hold up their key do not.
    DeadDoNotBlock,
    /// A message is dead as soon as one relay crashed on its group.
    OneCrashIsEnough,
    /// The relay does not notice that the database has another history.
    HistoryUnnoticed,
    /// The relay keeps what it had of a lane that it is granted again.
    GrantedTwice,
    /// Lanes are asked for while others are on their way back.
    AcquiresWhileReleasing,
    /// An unknown outcome is settled as delivered.
    SettlesUnconfirmed,
    /// A message that was read goes past the failed one of its key.
    OvertakesHead,
    /// Messages that queue behind one that fails go on.
    FollowersGo,
    /// A key is free although rows of it are on their way to the waiting table.
    FreedTooEarly,
    /// What was not sent is not read again.
    NotReadAgain,
    /// What is put down is overtaken by what another sink has.
    PutDownOvertaken,
    /// Nobody looks at the lease before a message is handed to a sink.
    LeaseUnchecked,
    /// Lanes are given back while messages are with a sink.
    LeavesTooEarly,
    /// Lanes are nobody's after an answer was lost.
    LostAnswerForgotten,
    /// An outage of a sink costs attempts.
    OutageCharged,
    /// Failures cost no attempts.
    NeverCharges,
    /// What queues when the relay stops counts as delivered.
    DroppedAtStop,
    /// A topic that is paused goes on.
    PauseIgnored,
    /// A sink that was down is never tried again.
    NeverProbes,
    /// A relay that lost its lease does not say that it lives.
    LeaseLostIsCrash,
    /// A message is dead because one relay has no route for it.
    OneRelayDecides,
    /// The waiting table is left alone for ten times as long as a read took, however long.
    RestsTooLong,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 30] = [
        Self::FenceDropped,
        Self::SettlesByNumber,
        Self::DeletesRange,
        Self::FloorDoesNotLag,
        Self::NeverEvicts,
        Self::HeldForEver,
        Self::DueTwice,
        Self::HostClock,
        Self::DeadDoNotBlock,
        Self::OneCrashIsEnough,
        Self::HistoryUnnoticed,
        Self::GrantedTwice,
        Self::AcquiresWhileReleasing,
        Self::SettlesUnconfirmed,
        Self::OvertakesHead,
        Self::FollowersGo,
        Self::FreedTooEarly,
        Self::NotReadAgain,
        Self::PutDownOvertaken,
        Self::LeaseUnchecked,
        Self::LeavesTooEarly,
        Self::LostAnswerForgotten,
        Self::OutageCharged,
        Self::NeverCharges,
        Self::DroppedAtStop,
        Self::PauseIgnored,
        Self::NeverProbes,
        Self::LeaseLostIsCrash,
        Self::OneRelayDecides,
        Self::RestsTooLong,
    ];
}

thread_local! {
    static CHOSEN: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Chooses a bug for this thread, or none.
pub fn plant(bug: Option<Planted>) {
    CHOSEN.set(bug);
}

/// Whether a bug is chosen.
pub fn is_planted(bug: Planted) -> bool {
    CHOSEN.get() == Some(bug)
}
