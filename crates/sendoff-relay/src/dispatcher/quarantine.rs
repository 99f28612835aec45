//! Quarantine: how the message that makes relays crash is found, without slowing the others down for long.
//!
//! While a lane of the relay counts `crash_limit` crashes or more, everything that the relay reads queues here. One group of
//! one lane at a time goes to the sinks, and is recorded in the store before. When the relay dies, that record is the lane's
//! quarantined group: the next relay of the lane works on each of its messages alone. A message that `crash_limit` relays
//! died on alone is dead.
//!
//! It ends after `max_in_flight` messages: those that were under way when the relay died are among them. It also ends when
//! there is nothing left to deliver, after five minutes, and when the lanes with the crashes belong to other relays: then
//! queued messages go first.

use super::*;

/// How many messages make a group: few enough to go through one by one after the next crash, and enough to cover
/// `max_in_flight` in a second or two.
const GROUP: usize = 64;

/// After a lane was held for this long without a quarantine, its crash count is reset.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// The same in quarantine: a sink that hangs, or is slow, must not keep the others in it for longer.
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct Quarantine {
    /// What was read, in order.
    rows: VecDeque<Row>,
    group: Option<Group>,
    /// The lane that the store has a note of, whose group is done.
    noted: Option<Lane>,
    /// How many messages were handed to a sink in groups.
    done: usize,
}

/// For searches, whose worlds have no crashes.
#[cfg(test)]
impl Clone for Quarantine {
    fn clone(&self) -> Self {
        assert!(!self.is_busy(), "rows in quarantine cannot be cloned");
        Self {
            noted: self.noted,
            done: self.done,
            ..Self::default()
        }
    }
}

struct Group {
    lane: Lane,
    /// Those that wait until the store has the note.
    rows: Vec<Row>,
    /// Those that are not settled yet.
    row_refs: Vec<RowRef>,
}

impl Quarantine {
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.group.as_ref().map_or(0, |group| group.rows.len())
    }

    /// Whether something queues here, or went to a sink from here and is not settled.
    pub(super) fn is_busy(&self) -> bool {
        self.group.is_some() || !self.rows.is_empty()
    }

    pub(super) fn push(&mut self, row: Row) {
        self.rows.push_back(row);
    }

    pub(super) fn has_rows_of(&self, lane: Lane) -> bool {
        let waiting = self.group.iter().flat_map(|group| &group.rows);
        self.rows.iter().chain(waiting).any(|row| row.row_ref().lane == lane)
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Row) -> bool) {
        self.rows.retain(keep);
    }

    /// Drops rows of these lanes that were not handed to a sink.
    pub(super) fn put_down(&mut self, of: impl Fn(Lane) -> bool) {
        self.rows.retain(|row| !of(row.row_ref().lane));
        self.group = self
            .group
            .take()
            .filter(|group| group.rows.is_empty() || !of(group.lane));
    }

    /// These lanes belong to another relay now.
    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        self.rows.retain(|row| !lanes.contains(&row.row_ref().lane));
        self.group = self.group.take().filter(|group| !lanes.contains(&group.lane));
        self.noted = self.noted.filter(|lane| !lanes.contains(lane));
    }

    /// A message is settled or was dropped; `tried`: a sink had it.
    pub(super) fn leave(&mut self, row_ref: &RowRef, tried: bool) {
        let Some(group) = &mut self.group else { return };
        let Some(at) = group.row_refs.iter().position(|other| other == row_ref) else {
            return;
        };
        group.row_refs.swap_remove(at);
        self.done += usize::from(tried);
        if group.row_refs.is_empty() {
            self.noted = Some(group.lane);
            self.group = None;
        }
    }
}

impl Dispatcher {
    /// Whether everything that is read has to go through the quarantine. All lanes of the relay: a group that shares the
    /// relay with other messages would be blamed for theirs.
    pub(super) fn is_quarantined(&self) -> bool {
        self.lanes.values().any(|lane| lane.crashes >= self.crash_limit)
    }

    /// The next group, when nothing else is in flight: it is to be noted in the store before [`Dispatcher::group_noted`] is called.
    ///
    /// A message that has to wait for another of its key is in none: no sink gets to see it. As a dead letter it would be due
    /// when an operator retries it, before the messages in front of it.
    pub(crate) fn next_group(&mut self, now: Instant) -> Option<(Lane, Vec<RowRef>)> {
        if self.quarantine.group.is_some() {
            return None;
        }
        if !self.is_quarantined() {
            // The lane with the crashes belongs to another relay now.
            for row in std::mem::take(&mut self.quarantine.rows) {
                self.admit(row, now);
            }
        }
        if self.entries.len() > self.refused.len() {
            return None;
        }
        loop {
            let row = self.quarantine.rows.pop_front()?;
            if self.has_to_wait(&row) {
                self.admit(row, now);
                continue;
            }
            let lane = row.row_ref().lane;
            let rows = self.gather(row);
            let row_refs: Vec<RowRef> = rows.iter().map(|row| row.row_ref().clone()).collect();
            self.quarantine.group = Some(Group {
                lane,
                rows,
                row_refs: row_refs.clone(),
            });
            return Some((lane, row_refs));
        }
    }

    /// The first row alone if it is quarantined; otherwise it and the rows behind it in its lane, up to one that is.
    fn gather(&mut self, first: Row) -> Vec<Row> {
        let lane = first.row_ref().lane;
        let quarantined = self.lanes.get(&lane).and_then(|held| held.quarantined.as_ref());
        let quarantined = quarantined.filter(|quarantined| quarantined.crashes > 0);
        let is_quarantined = |row: &Row| quarantined.is_some_and(|quarantined| quarantined.covers(row.row_ref()));
        let mut open = !is_quarantined(&first);
        let mut group = vec![first];
        let mut rest = VecDeque::with_capacity(self.quarantine.rows.len());
        for row in std::mem::take(&mut self.quarantine.rows) {
            open = open && group.len() < GROUP && !(row.row_ref().lane == lane && is_quarantined(&row));
            if open && row.row_ref().lane == lane {
                group.push(row);
            } else {
                rest.push_back(row);
            }
        }
        self.quarantine.rows = rest;
        group
    }

    /// The store has the note: now the group may go.
    pub(crate) fn group_noted(&mut self, now: Instant) {
        let rows = self
            .quarantine
            .group
            .as_mut()
            .map(|group| std::mem::take(&mut group.rows));
        for row in rows.unwrap_or_default() {
            self.admit(row, now);
        }
    }

    /// It could not be noted: the group is tried again later.
    pub(crate) fn group_not_noted(&mut self) {
        let waits = |group: &mut Group| !group.rows.is_empty();
        if let Some(group) = self.quarantine.group.take_if(waits) {
            for row in group.rows.into_iter().rev() {
                self.quarantine.rows.push_front(row);
            }
        }
    }

    /// The lane whose note is void: its group is done, and no other follows.
    pub(crate) fn void_note(&mut self) -> Option<Lane> {
        if self.quarantine.group.is_some() {
            return None;
        }
        self.quarantine.noted.take()
    }

    /// That could not be written.
    pub(crate) fn note_stays(&mut self, lane: Lane) {
        self.quarantine.noted = Some(lane).filter(|lane| self.holds(*lane));
    }

    /// Lanes with crashes, when what made relays crash is not among the next messages: they have none any more.
    /// `caught_up`: all ready messages were read since lanes were last gained.
    pub(crate) fn clear_quarantine(&mut self, caught_up: bool, now: Instant) -> Vec<Lane> {
        let quarantined = self.is_quarantined();
        let is_over = caught_up && self.in_flight() == 0 || quarantined && self.quarantine.done >= self.max_in_flight;
        let limit = if quarantined { LONGEST } else { LONG_ENOUGH };
        let mut cleared = Vec::new();
        for (lane, held) in &mut self.lanes {
            let has_crashes = held.crashes > 0 || held.quarantined.is_some();
            if has_crashes && (is_over || now - held.gained >= limit) {
                (held.crashes, held.quarantined) = (0, None);
                cleared.push(*lane);
            }
        }
        if quarantined && !self.is_quarantined() {
            self.end_quarantine(now);
        }
        cleared.sort_unstable();
        cleared
    }

    /// Rows that are read from now on do not queue here: they must not overtake those that did.
    fn end_quarantine(&mut self, now: Instant) {
        self.group_noted(now);
        let quarantine = std::mem::take(&mut self.quarantine);
        for row in quarantine.rows {
            self.admit(row, now);
        }
    }

    /// Whether a message would go nowhere but behind the head of its key.
    pub(super) fn has_to_wait(&mut self, row: &Row) -> bool {
        let Row::Message(outgoing) = row else { return false };
        let Some(key) = outgoing.key.as_deref().map(Arc::<str>::from) else {
            return false;
        };
        let row_ref = &outgoing.row_ref;
        let at = |sink: &Arc<str>| KeyRef {
            lane: row_ref.lane,
            key: key.clone(),
            sink: sink.clone(),
        };
        if let (Table::Waiting, Some(sink)) = (row_ref.table, &row_ref.sink) {
            return self.order.follows_failure(&at(sink), row_ref.seq);
        }
        let sinks = self.plan.topic(&outgoing.topic).sinks;
        let is_blocked = |sink: &SinkIndex| self.order.is_blocked(&at(&self.plan.sinks[*sink].name));
        !sinks.is_empty() && sinks.iter().all(is_blocked)
    }
}
