//! Messages that are put down to be read again.
//!
//! Those of one key go together, and none that comes behind them may be in hand before they are back: neither one that
//! queues, nor one that a read brings which began before.

use super::*;

impl Desk {
    /// The message was not sent after all, for no fault of its own: it is forgotten here, with all others of its key, and
    /// they are read again, in order.
    pub(crate) fn not_sent(&mut self, ticket: Ticket) {
        let Some(item) = self.items.get_mut(ticket.item) else {
            return;
        };
        item.legs[ticket.leg].with_sink = false;
        let (lane, key) = (item.delivery.place.lane, item.key.clone());
        let together = self.of_key(ticket.item, lane, key.as_ref());
        if !together.iter().all(|id| self.items[*id].is_idle()) {
            // One of them, at one of its sinks, has a verdict or is with the sink, and is going to be written down. This one
            // must be in the table before it: who reads it from the ready table would find the other in front.
            let error = "the relay lost its lease before it was sent".to_owned();
            return self.wait_for_sink(ticket, Duration::ZERO, error);
        }
        for id in together {
            self.forgotten.push(self.items[id].delivery.place.clone());
            self.drop_item(id);
        }
        if let Some(key) = key {
            self.forgotten_keys.insert((lane, key));
            let mut quarantine = std::mem::take(&mut self.quarantine);
            quarantine.retain(|row| !self.forgets(row));
            self.quarantine = quarantine;
        }
    }

    /// A message, and all others of its key in hand.
    fn of_key(&self, id: ItemId, lane: Lane, key: Option<&Arc<str>>) -> Vec<ItemId> {
        let Some(key) = key else { return vec![id] };
        let same = |item: &Item| item.delivery.place.lane == lane && item.key.as_ref() == Some(key);
        let items = self.items.iter().filter(|(_, item)| same(item));
        items.map(|(id, _)| id).collect()
    }

    /// Whether a row is forgotten as well, because it is of a key that is read again.
    pub(super) fn forgets(&mut self, row: &Row) -> bool {
        let (Row::Message(delivery) | Row::Expired(delivery)) = row else {
            return false;
        };
        let Some(key) = delivery.key.as_deref().filter(|_| !self.forgotten_keys.is_empty()) else {
            return false;
        };
        let forgets = self.forgotten_keys.contains(&(delivery.place.lane, Arc::from(key)));
        if forgets {
            self.forgotten.push(delivery.place.clone());
        }
        forgets
    }

    /// Places of rows that are to be read again.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Place> {
        let forgotten = std::mem::take(&mut self.forgotten);
        if planted!(NotReadAgain) { Vec::new() } else { forgotten }
    }
}
