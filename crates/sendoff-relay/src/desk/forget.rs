//! Messages that are put down to be read again.
//!
//! Those of one key go together, and none that comes behind them may be in hand before they are back: neither one that
//! queues, nor one that a read brings which began before.

use super::*;

impl Desk {
    /// The message was not sent after all, for no fault of its own: it is forgotten here, with those behind it in its
    /// key, and all of them are read again, in order.
    pub(crate) fn not_sent(&mut self, ticket: Ticket) {
        let Some(item) = self.items.get_mut(ticket.item) else {
            return;
        };
        item.legs[ticket.leg].with_sink = false;
        if !item.is_idle() {
            // Another leg has a verdict or is with its sink: this one has to be written down as well.
            let error = "the relay lost its lease before it was sent".to_owned();
            return self.wait_for_sink(ticket, Duration::ZERO, error);
        }
        let lane = item.delivery.place.lane;
        let key = item.key.clone();
        let chain = match (&key, item.legs[ticket.leg].sink) {
            (Some(key), Some(sink)) => self.sinks[sink].chains.get(key).cloned().unwrap_or_default(),
            _ => VecDeque::new(),
        };
        for behind in std::iter::once(ticket).chain(chain) {
            let Some(item) = self.items.get(behind.item) else {
                continue;
            };
            if item.is_idle() {
                self.forgotten.push(item.delivery.place.clone());
                self.drop_item(behind.item);
            } else {
                self.wait_for_sink(behind, Duration::ZERO, "the one before it was not sent".to_owned());
            }
        }
        if let Some(key) = key {
            self.forgotten_keys.insert((lane, key));
            let mut quarantine = std::mem::take(&mut self.quarantine);
            quarantine.retain(|row| !self.forgets(row));
            self.quarantine = quarantine;
        }
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
        std::mem::take(&mut self.forgotten)
    }
}
