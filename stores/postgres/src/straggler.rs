//! How far a reader has read completely: floors that never skip a message whose transaction commits late.
//!
//! # The problem
//! `seq` is handed out when a message is inserted and seen when its transaction commits. A reader that goes on from the
//! highest `seq` it saw passes over a lower one that commits later. Reading from the beginning every time is safe and
//! slow: what was settled leaves dead index entries that vacuum cannot take away while an old transaction is open.
//!
//! # What is known
//! 1. A statement that emits has its transaction id before it gets a `seq` (trigger `outbox_take_in`), and both are
//!    handed out in order. So when the head of the sequence was `S` in one read, and a transaction id `X` is taken in a
//!    later one, every transaction that owns a `seq` up to `S` has an id below `X`: together they are a [`Mark`].
//! 2. A snapshot lists the transactions in progress. Rows and snapshot come out of the same statement.
//! 3. Who began after somebody else's commit also ends after it. So a snapshot that sees a transaction as ended sees
//!    everything as ended that had committed before that transaction began.
//!
//! # The invariant
//! [`Floors`] keeps a floor `F`, and the transactions `P` that were below the mark of `F` and in progress when it was
//! set. Each lane has a cursor `C`: the last `seq` of a page that came back full, the end of a stretch that came whole (see
//! `stretch.rs`), or infinity. At all times:
//!
//! > Every row of a lane with `seq ≤ min(C, F)` has been returned, unless its transaction is in `P` or rolled back.
//!
//! A read starts every lane at `min(C, F)` and sees some snapshot.
//! - **All of `P` is still in progress in it.** Then nothing below the start has become visible, so the read has
//!   everything; and by (3) nothing it saw began after a commit that it has not returned. Its rows can be handed out.
//! - **Some of `P` have ended.** Rows of theirs below the start may have become visible, and rows that were read may have
//!   begun after their commit: the rows are thrown away, and everything is read again from where theirs begin. A
//!   transaction with an id of at least some mark's `X` got its numbers after that mark's `S` was read, so they are all
//!   above it: the read starts at `min(C, S)` for the mark before the oldest of those that ended. It has all their rows,
//!   and rows that followed their commit, in the order of `seq`, which is the order of these commits. Should more of `P`
//!   have ended in the snapshot of this read, it starts lower once more; `P` only has so many.
//!
//! Either way all visible rows up to the new `min(C, S)` have now been returned, for any mark `S`, and those that are
//! invisible belong to transactions in progress. So `F` may be set to any `S` whose `X` is at most the snapshot's `xmax`,
//! if `P` becomes those transactions in progress that are below `X`. A mark with no such transaction is safe for good: it
//! is kept as the lowest place where a read ever has to start.
//!
//! Time plays no part in this. It only keeps `P` small: a mark with transactions in progress is adopted once they have
//! lasted a while, because each of them costs a second read when it ends; and taking a transaction id is not free.
//!
//! Numbers can also go backwards: after a failover to a standby that lagged, a crash that lost asynchronous commits, or a
//! table that was truncated. A new connection makes the reader start over; another start of the server, a smaller `xmax`
//! or a smaller head of the sequence is another history ([`Judgement::Restart`]), of which the relay is told.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Transactions that have been open this long are waited for by name instead of holding the floor.
const PATIENCE: Duration = Duration::from_millis(250);

/// At most one transaction id is taken in this time.
const MARK_EVERY: Duration = Duration::from_millis(100);

/// While an old transaction is open marks pile up; they are thinned out beyond this.
const MARKS_KEPT: usize = 64;

/// Which transactions were in progress, as `pg_current_snapshot()` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    xmin: u64,
    xmax: u64,
    /// Sorted.
    running: Vec<u64>,
}

impl Snapshot {
    /// Reads `xmin:xmax:xid,xid,…`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (xmin, xmax) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let list = parts.next()?;
        let mut running = if list.is_empty() {
            Vec::new()
        } else {
            list.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?
        };
        running.sort_unstable();
        Some(Self { xmin, xmax, running })
    }

    fn is_running(&self, xid: u64) -> bool {
        xid >= self.xmax || self.running.binary_search(&xid).is_ok()
    }

    fn running_below(&self, xid: u64) -> Vec<u64> {
        self.running
            .iter()
            .copied()
            .take_while(|running| *running < xid)
            .collect()
    }
}

/// What a read says about the moment it was made.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    pub(crate) snapshot: Snapshot,
    /// The last `seq` that was handed out, to whomever.
    pub(crate) head: i64,
    /// The transaction id that was taken, if [`Floors::wants_mark`] asked for it.
    pub(crate) xid: Option<u64>,
    /// When the server started.
    pub(crate) started: SystemTime,
}

/// What is to be done with the rows of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// They are good.
    Accept,
    /// Rows below may have become visible: throw them away and read from here.
    ReadFrom(i64),
    /// It is not the server, or not the history, that the floors are about: start over from nothing.
    Restart,
}

/// Every transaction that owns a `seq` up to this one has an id below `xid`.
#[derive(Debug)]
struct Mark {
    seq: i64,
    xid: u64,
    at: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Floors {
    floor: i64,
    safe: i64,
    /// The id of the floor's mark.
    bound: u64,
    /// `P`, sorted.
    pending: Vec<u64>,
    /// In order; those up to `floor` are kept until they are safe.
    marks: VecDeque<Mark>,
    /// The head that the last read saw: the first half of the next mark.
    head: Option<i64>,
    marked_at: Option<Instant>,
    /// `xmax`, start of the server and head, to notice that history was rewritten.
    seen: Option<(u64, SystemTime, i64)>,
}

impl Floors {
    /// Without floors, on the same history as far as is known.
    pub(crate) fn restarted(&self) -> Self {
        Self {
            seen: self.seen,
            ..Self::default()
        }
    }

    /// The next read sees a history of which nothing is known.
    pub(crate) fn forget_history(&mut self) {
        self.seen = None;
    }

    /// Where a normal read starts.
    pub(crate) fn floor(&self) -> i64 {
        self.floor
    }

    /// Whether the next read shall take a transaction id.
    pub(crate) fn wants_mark(&self, now: Instant) -> bool {
        let newest = self.marks.back().map_or(self.floor, |mark| mark.seq.max(self.floor));
        let due = self.marked_at.is_none_or(|at| now.duration_since(at) >= MARK_EVERY);
        due && self.head.is_some_and(|head| head > newest)
    }

    /// Judges a read that started at `start`.
    pub(crate) fn judge(&self, sighting: &Sighting, start: i64) -> Judgement {
        let snapshot = &sighting.snapshot;
        let rewritten = self.seen.is_some_and(|(xmax, started, head)| {
            snapshot.xmax < xmax || sighting.started != started || sighting.head < head
        });
        if rewritten {
            return Judgement::Restart;
        }
        let ended = self.pending.iter().find(|xid| !snapshot.is_running(**xid));
        match ended.map(|xid| self.before(*xid)) {
            Some(begins) if begins < start => Judgement::ReadFrom(begins),
            Some(_) | None => Judgement::Accept,
        }
    }

    /// All numbers of this transaction, and of those after it, are above the one returned.
    fn before(&self, xid: u64) -> i64 {
        let mark = self.marks.iter().rev().find(|mark| mark.xid <= xid);
        mark.map_or(self.safe, |mark| mark.seq)
    }

    /// Takes note of what a read told about its moment, whether or not its rows are used.
    pub(crate) fn note(&mut self, now: Instant, sighting: &Sighting) {
        if let (Some(seq), Some(xid)) = (self.head, sighting.xid) {
            self.marks.push_back(Mark { seq, xid, at: now });
            self.marked_at = Some(now);
        }
        self.head = Some(sighting.head);
        self.seen = Some((sighting.snapshot.xmax, sighting.started, sighting.head));
    }

    /// Raises the floors after a read that was accepted.
    pub(crate) fn advance(&mut self, now: Instant, snapshot: &Snapshot) {
        let adoptable = |mark: &&Mark| {
            let patient = mark.xid <= snapshot.xmax && now.duration_since(mark.at) >= PATIENCE;
            mark.xid <= snapshot.xmin || patient
        };
        if let Some(mark) = self.marks.iter().rev().find(adoptable)
            && mark.seq > self.floor
        {
            self.floor = mark.seq;
            self.bound = mark.xid;
        }
        self.pending = snapshot.running_below(self.bound);
        while let Some(mark) = self.marks.front()
            && mark.xid <= snapshot.xmin
        {
            self.safe = self.safe.max(mark.seq);
            self.marks.pop_front();
        }
        self.thin_out();
    }

    /// Every second mark goes, so that those left still reach from the safe one to the newest. The last two stay:
    /// they may not have been adopted yet.
    fn thin_out(&mut self) {
        if self.marks.len() <= MARKS_KEPT {
            return;
        }
        let last = self.marks.len() - 2;
        let mut at = 0;
        self.marks.retain(|_| {
            at += 1;
            at % 2 == 1 || at > last
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_read_as_the_server_writes_it() {
        let snapshot = Snapshot::parse("10:20:14,10").unwrap();
        assert_eq!((snapshot.xmin, snapshot.xmax), (10, 20));
        assert!([10, 14, 20, 4_294_967_297].iter().all(|xid| snapshot.is_running(*xid)));
        assert!([9, 11, 19].iter().all(|xid| !snapshot.is_running(*xid)));
        assert_eq!(snapshot.running_below(14), [10]);
        assert!(Snapshot::parse("4294967297:4294967297:").unwrap().running.is_empty());
        assert!(
            ["", "1:2", "a:2:", "1:2:x"]
                .iter()
                .all(|text| Snapshot::parse(text).is_none())
        );
    }
}
