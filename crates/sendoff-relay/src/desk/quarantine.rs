//! Quarantine: how the message that makes relays crash is found, without slowing the others down for long.
//!
//! While a lane of the relay counts `crash_limit` crashes or more, everything that the relay reads queues here. One group at a
//! time goes to the sinks, of one lane, and the store is told of it before. A relay that dies leaves that group behind as the
//! lane's suspect: whoever has the lane next works on each of its messages alone. A message that `crash_limit` relays died on
//! alone is dead.
//!
//! It ends after as many messages as a relay has in hand at most (its window): what was under way when the relay died is
//! among them. It also ends when there is nothing left to deliver, after five minutes, and when the lanes with the crashes are
//! other relays': then what queues goes first.

use super::*;
use sendoff::store::Room;

/// How many messages make a group: few enough to go through one by one after the next crash, and enough to cover a window in
/// a second or two.
const GROUP: usize = 64;

/// A lane that was held for so long without a quarantine has no crashes any more.
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

struct Group {
    lane: Lane,
    /// Those that wait until the store has the note.
    rows: Vec<Row>,
    /// Those that are not settled yet.
    places: Vec<Place>,
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
        self.rows.iter().chain(waiting).any(|row| row.place().lane == lane)
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Row) -> bool) {
        self.rows.retain(keep);
    }

    /// Drops rows of these lanes that were not handed to a sink.
    pub(super) fn put_down(&mut self, of: impl Fn(Lane) -> bool) {
        self.rows.retain(|row| !of(row.place().lane));
        self.group = self
            .group
            .take()
            .filter(|group| group.rows.is_empty() || !of(group.lane));
    }

    /// These lanes are somebody else's now.
    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        self.rows.retain(|row| !lanes.contains(&row.place().lane));
        self.group = self.group.take().filter(|group| !lanes.contains(&group.lane));
        self.noted = self.noted.filter(|lane| !lanes.contains(lane));
    }

    /// A message is settled, or was put down; `tried`: a sink had it.
    pub(super) fn leave(&mut self, place: &Place, tried: bool) {
        let Some(group) = &mut self.group else { return };
        let Some(at) = group.places.iter().position(|other| other == place) else {
            return;
        };
        group.places.swap_remove(at);
        self.done += usize::from(tried);
        if group.places.is_empty() {
            self.noted = Some(group.lane);
            self.group = None;
        }
    }
}

impl Desk {
    /// Whether everything that is read has to go through the quarantine. All lanes of the relay: a group that shares the
    /// relay with other messages would be blamed for theirs.
    pub(super) fn is_quarantined(&self) -> bool {
        self.lanes.values().any(|lane| lane.crashes >= self.crash_limit)
    }

    /// The next group, when nothing else is in hand: it is to be noted in the store before [`Desk::group_noted`] is called.
    ///
    /// A message that has to wait for another of its key is in none: no sink gets to see it. As a dead letter it would be due
    /// again when an operator says so, before those that wait in front of it.
    pub(crate) fn next_group(&mut self, now: Instant) -> Option<(Lane, Vec<Place>)> {
        if self.quarantine.group.is_some() {
            return None;
        }
        if !self.is_quarantined() {
            // The lane with the crashes is another relay's now.
            for row in std::mem::take(&mut self.quarantine.rows) {
                self.admit(row, now);
            }
        }
        if self.items.len() > self.refused.len() {
            return None;
        }
        loop {
            let row = self.quarantine.rows.pop_front()?;
            if self.has_to_wait(&row) {
                self.admit(row, now);
                continue;
            }
            let lane = row.place().lane;
            let rows = self.gather(row);
            let places: Vec<Place> = rows.iter().map(|row| row.place().clone()).collect();
            self.quarantine.group = Some(Group {
                lane,
                rows,
                places: places.clone(),
            });
            return Some((lane, places));
        }
    }

    /// The first row alone if it is under suspicion; else those behind it in its lane, up to one that is.
    fn gather(&mut self, first: Row) -> Vec<Row> {
        let lane = first.place().lane;
        let suspect = self.lanes.get(&lane).and_then(|held| held.suspect.as_ref());
        let suspect = suspect.filter(|suspect| suspect.crashes > 0);
        let is_suspected = |row: &Row| suspect.is_some_and(|suspect| suspect.covers(row.place()));
        let mut open = !is_suspected(&first);
        let mut group = vec![first];
        let mut rest = VecDeque::with_capacity(self.quarantine.rows.len());
        for row in std::mem::take(&mut self.quarantine.rows) {
            open = open && group.len() < GROUP && !(row.place().lane == lane && is_suspected(&row));
            if open && row.place().lane == lane {
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
    /// `caught_up`: all that is ready was read since the last lanes were gained.
    pub(crate) fn absolve(&mut self, caught_up: bool, now: Instant) -> Vec<Lane> {
        let quarantined = self.is_quarantined();
        let is_over = caught_up && self.in_hand() == 0 || quarantined && self.quarantine.done >= self.window;
        let limit = if quarantined { LONGEST } else { LONG_ENOUGH };
        let mut absolved = Vec::new();
        for (lane, held) in &mut self.lanes {
            let has_crashes = held.crashes > 0 || held.suspect.is_some();
            if has_crashes && (is_over || now - held.gained >= limit) {
                (held.crashes, held.suspect) = (0, None);
                absolved.push(*lane);
            }
        }
        if quarantined && !self.is_quarantined() {
            self.end_quarantine(now);
        }
        absolved.sort_unstable();
        absolved
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
        let Row::Message(delivery) = row else { return false };
        let Some(key) = delivery.key.as_deref().map(Arc::<str>::from) else {
            return false;
        };
        let place = &delivery.place;
        if let (Room::Waiting, Some(leg)) = (place.room, &place.leg) {
            let failed = self.failed.get(&(place.lane, key, leg.clone()));
            return failed.is_some_and(|head| head.seq < place.seq);
        }
        let sinks = self.plan.topic(&delivery.topic).sinks;
        let Some(lane) = self.lanes.get(&place.lane) else {
            return false;
        };
        let is_blocked = |sink: &SinkIndex| lane.blocked.contains(&key, &self.plan.sinks[*sink].name);
        !sinks.is_empty() && sinks.iter().all(is_blocked)
    }
}
