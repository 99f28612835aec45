//! Rows of one key reach the waiting table in order.
//!
//! A message for several sinks is written when all of them have answered. Until then a follower that is to be held at
//! one of them must not be written either: it would stand in the table alone, and be let go before the message in front
//! of it arrives there. So a leg that has to wait while its message is still open shuts a gate for its key, and followers
//! queue at the gate until the message is on its way to the table.

use super::*;

/// Followers at one key and sink that wait for the message in front of them to be written.
pub(super) struct Gate {
    item: ItemId,
    queue: VecDeque<Ticket>,
}

pub(super) type GateKey = (Lane, Arc<str>, Arc<str>);

impl Desk {
    /// Sends a leg to wait behind the head of its key, in its turn.
    pub(super) fn hold(&mut self, ticket: Ticket) {
        if let Some(gate) = self.gate_of(ticket).and_then(|key| self.gates.get_mut(&key)) {
            gate.queue.push_back(ticket);
        } else {
            self.decide(ticket, Verdict::Hold);
        }
    }

    fn gate_of(&self, ticket: Ticket) -> Option<GateKey> {
        let item = self.items.get(ticket.item)?;
        Some((
            item.delivery.place.lane,
            item.key.clone()?,
            item.legs[ticket.leg].name.clone(),
        ))
    }

    /// A leg has to wait, and its message is still open at another sink.
    pub(super) fn shut_gate(&mut self, key: GateKey, item: ItemId) {
        self.gates.entry(key).or_insert_with(|| Gate {
            item,
            queue: VecDeque::new(),
        });
    }

    /// A message is on its way to the table: what queued behind it follows.
    pub(super) fn open_gates(&mut self, item: ItemId) {
        if self.gates.is_empty() {
            return;
        }
        let keys: Vec<GateKey> = self
            .gates
            .iter()
            .filter(|(_, gate)| gate.item == item)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            let Some(gate) = self.gates.remove(&key) else { continue };
            for ticket in gate.queue {
                self.hold(ticket);
            }
        }
    }
}
