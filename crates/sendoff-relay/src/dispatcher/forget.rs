//! Drops messages from memory, to be read again, and with them all others of their key.

use super::order::of_key;
use super::*;

impl Dispatcher {
    /// The message was not sent, for reasons that are not its own: it is dropped here with all others of its key, and they are
    /// read again, in order.
    pub(crate) fn not_sent(&mut self, ticket: Ticket) {
        let Some(entry) = self.entries.get_mut(ticket.entry) else {
            return;
        };
        entry.deliveries[ticket.delivery].with_sink = false;
        let (lane, key) = (entry.outgoing.row_ref.lane, entry.key.clone());
        let together = of_key(&self.entries, ticket.entry, lane, key.as_ref());
        if !together.iter().all(|id| self.entries[*id].is_idle()) {
            // One of them, at one of its sinks, has a verdict or is with the sink, and is going to be written down. This one
            // must be in the table before it: who reads it from the ready table would find the other in front.
            let error = "the relay lost its lease before it was sent".to_owned();
            return self.wait_for_sink(ticket, Duration::ZERO, error);
        }
        for id in together {
            self.forgotten.push(self.entries[id].outgoing.row_ref.clone());
            self.drop_entry(id);
        }
        if let Some(key) = key {
            self.order.reads_again(lane, key);
            let mut quarantine = std::mem::take(&mut self.quarantine);
            quarantine.retain(|row| !self.forgets(row));
            self.quarantine = quarantine;
        }
    }

    /// Whether a row is forgotten as well, because it is of a key that is read again.
    pub(super) fn forgets(&mut self, row: &Row) -> bool {
        let forgets = self.order.drops(row);
        if forgets {
            self.forgotten.push(row.row_ref().clone());
        }
        forgets
    }

    /// Row refs that are to be read again.
    pub(crate) fn take_forgotten(&mut self) -> Vec<RowRef> {
        let forgotten = std::mem::take(&mut self.forgotten);
        if planted!(NotReadAgain) { Vec::new() } else { forgotten }
    }
}
