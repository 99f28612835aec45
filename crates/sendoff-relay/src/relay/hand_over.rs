//! Hands lanes over when only another relay has a route for their messages.
//!
//! A relay that reads such a message defers it and gives its lane up. For a short time it asks for that many fewer lanes. The
//! relay that has routes which others lack takes the free lanes beyond its share, and then gives back lanes that it has held
//! for longer. So lanes are swapped, and every relay keeps its share.
//!
//! If such messages arrive all the time, in lanes of every relay, lanes would move constantly: the pause between two swaps grows.

use std::time::Duration;

use sendoff::store::Lane;
use tokio::time::Instant;

use super::running::Running;

/// The first and the longest pause after lanes were given up.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How many lanes are given up together, or taken beyond the share.
const AT_ONCE: usize = 8;

/// Lanes that were gained within this time are not given back: the messages they were taken for may not be due yet.
const RECENT: Duration = Duration::from_secs(10);

/// For how many heartbeats a lane that was given up is left to others.
const LEFT_TO_OTHERS: u32 = 2;

/// The lanes that a relay gives up for others.
#[derive(Default)]
pub(super) struct HandOver {
    /// Lanes, and until when that many fewer are asked for; unknown while they are being given back.
    lanes: Vec<(Lane, Option<Instant>)>,
    /// When some may be given up again.
    next: Option<Instant>,
    pause: Duration,
    /// Another live relay lacks routes that this one has.
    pub(super) has_more_routes: bool,
}

impl HandOver {
    /// How many lanes are left to others.
    fn count(&mut self, now: Instant) -> usize {
        self.lanes.retain(|(_, until)| until.is_none_or(|until| now < until));
        self.lanes.len()
    }

    /// These lanes are free for others.
    pub(super) fn released(&mut self, lanes: &[Lane], until: Instant) {
        for (_, left) in self.lanes.iter_mut().filter(|(lane, _)| lanes.contains(lane)) {
            *left = Some(until);
        }
    }

    /// All lanes are lost, those that are left to others among them.
    pub(super) fn without_lanes(self) -> Self {
        Self {
            lanes: Vec::new(),
            ..self
        }
    }
}

impl Running {
    /// Gives lanes up that have messages for another relay.
    pub(super) fn hand_over(&mut self, now: Instant) {
        let mut lanes = self.dispatcher.take_stranded();
        let waits = self.others.hand_over.next.is_some_and(|next| now < next);
        if lanes.is_empty() || waits || planted!(NeverHandsOver) {
            return;
        }
        lanes.truncate(AT_ONCE);
        let hand_over = &mut self.others.hand_over;
        // Long after the last time, the pause starts again at its shortest.
        let is_new = hand_over.next.is_none_or(|next| now >= next + LONGEST_PAUSE);
        hand_over.pause = if is_new {
            FIRST_PAUSE
        } else {
            (hand_over.pause * 2).min(LONGEST_PAUSE)
        };
        hand_over.next = Some(now + hand_over.pause);
        hand_over.lanes.retain(|(lane, _)| !lanes.contains(lane));
        hand_over.lanes.extend(lanes.iter().map(|lane| (*lane, None)));
        tracing::info!(
            event = "lanes_handed_over",
            ?lanes,
            "releasing lanes: only another relay has a route for messages in them"
        );
        self.dispatcher.leave(&lanes);
    }

    /// Lanes were given back.
    pub(super) fn left_to_others(&mut self, lanes: &[Lane]) {
        let until = Instant::now() + self.settings.heartbeat * LEFT_TO_OTHERS;
        self.others.hand_over.released(lanes, until);
    }

    /// How many lanes to ask for, with so many in flight.
    pub(super) fn wanted_lanes(&mut self, share: usize, mine: usize, now: Instant) -> usize {
        let extra = if self.others.hand_over.has_more_routes && !self.once {
            AT_ONCE
        } else {
            0
        };
        let left = self.others.hand_over.count(now);
        (share + extra).saturating_sub(mine + left)
    }

    /// Lanes beyond the share, longest held first.
    pub(super) fn surplus_lanes(&self, share: usize, now: Instant) -> Vec<Lane> {
        let mut lanes = self.dispatcher.staying();
        lanes.sort_by_key(|lane| !self.dispatcher.gained_within(*lane, RECENT, now));
        lanes.split_off(share.min(lanes.len()))
    }
}
