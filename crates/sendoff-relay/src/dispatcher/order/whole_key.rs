//! Rules that concern all messages of a key in flight, whatever their sinks.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sendoff::store::Lane;
use slotmap::SlotMap;

use crate::dispatcher::{Entry, EntryId};

/// A message, and all others of its key in flight.
pub(in crate::dispatcher) fn of_key(
    entries: &SlotMap<EntryId, Entry>,
    id: EntryId,
    lane: Lane,
    key: Option<&Arc<str>>,
) -> Vec<EntryId> {
    let Some(key) = key else { return vec![id] };
    let same = |entry: &Entry| entry.outgoing.row_ref.lane == lane && entry.key.as_ref() == Some(key);
    let entries = entries.iter().filter(|(_, entry)| same(entry));
    entries.map(|(id, _)| id).collect()
}

/// Of each key of which a message was begun at one of its sinks and has to go to another: the last such message. Those
/// before it have to go first.
pub(in crate::dispatcher) fn last_begun(
    entries: &SlotMap<EntryId, Entry>,
    of: impl Fn(Lane) -> bool,
) -> FxHashMap<(Lane, Arc<str>), i64> {
    let mut begun = FxHashMap::default();
    for entry in entries.values() {
        let row_ref = &entry.outgoing.row_ref;
        let is_open = entry.deliveries.len() > 1 && entry.undecided > 0 && !entry.is_idle();
        if let Some(key) = entry.key.as_ref().filter(|_| is_open && of(row_ref.lane)) {
            let last = begun.entry((row_ref.lane, key.clone())).or_insert(row_ref.seq);
            *last = row_ref.seq.max(*last);
        }
    }
    begun
}
