//! Bugs on purpose, to see whether the simulator finds them.
//!
//! They exist only in builds with the feature `planted`, which only the tests of `sendoff-testkit` use. Even there, a bug is
//! active only in a thread whose test selects it.

use std::cell::Cell;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Planted {
    /// The store settles for relays that do not hold the lane.
    FenceDropped,
    /// The store settles any message that has the number.
    SettlesByNumber,
    /// The store deletes a range where rows are named.
    DeletesRange,
    /// The reader does not come back for transactions that commit late.
    FloorDoesNotLag,
    /// The store never takes lanes from relays that vanished.
    NeverEvicts,
    /// The store never releases blocked rows.
    BlockedForEver,
    /// The reader returns due rows that are in flight.
    DueTwice,
    /// The store judges leases by a clock that is never set.
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
    /// Messages that queue behind a failed one are sent.
    FollowersGo,
    /// A key is free although rows of it are on their way to the waiting table.
    FreedTooEarly,
    /// Messages that were not sent are not read again.
    NotReadAgain,
    /// A dropped message is overtaken by a message that another sink has.
    PutDownOvertaken,
    /// The relay does not check the lease before it hands a message to a sink.
    LeaseUnchecked,
    /// Lanes are given back while messages are with a sink.
    LeavesTooEarly,
    /// Lanes have no reader after an answer was lost.
    LostAnswerForgotten,
    /// An outage of a sink costs attempts.
    OutageCharged,
    /// Failures cost no attempts.
    NeverCharges,
    /// The store charges an attempt again when a settlement is written twice.
    ChargedTwice,
    /// Queued messages count as delivered when the relay stops.
    DroppedAtStop,
    /// A paused topic is still delivered.
    PauseIgnored,
    /// The store does not see that a pause has ended when it makes messages wait for it.
    PauseEndsUnseen,
    /// A sink that was down is never tried again.
    NeverProbes,
    /// A relay that lost its lease does not report that it is alive.
    LeaseLostIsCrash,
    /// A message is dead because one relay has no route for it.
    OneRelayDecides,
    /// A relay keeps lanes with messages that only another relay has a route for.
    NeverHandsOver,
    /// The waiting table is left alone for ten times as long as a read took, however long.
    RestsTooLong,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::FenceDropped,
        Self::SettlesByNumber,
        Self::DeletesRange,
        Self::FloorDoesNotLag,
        Self::NeverEvicts,
        Self::BlockedForEver,
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
        Self::ChargedTwice,
        Self::DroppedAtStop,
        Self::PauseIgnored,
        Self::PauseEndsUnseen,
        Self::NeverProbes,
        Self::LeaseLostIsCrash,
        Self::OneRelayDecides,
        Self::NeverHandsOver,
        Self::RestsTooLong,
    ];
}

thread_local! {
    static CHOSEN: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Selects a bug for this thread, or none.
pub fn plant(bug: Option<Planted>) {
    CHOSEN.set(bug);
}

/// Whether a bug is selected.
pub fn is_planted(bug: Planted) -> bool {
    CHOSEN.get() == Some(bug)
}
