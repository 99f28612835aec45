//! Idempotency keys within their window, whether or not the first message is still here.

use std::collections::HashMap;

use sendoff::Uuid;

use super::clock::Micros;

/// A topic and an idempotency key.
pub(super) type Once = (String, String);

#[derive(Clone)]
pub(super) struct Dedup {
    pub(super) window: Micros,
    /// Committed: the holder, and until when.
    pub(super) held: HashMap<Once, (Uuid, Micros)>,
    /// Taken by an open transaction, which has this number.
    pub(super) taken: HashMap<Once, (Uuid, u64)>,
}

/// What came of asking for a key.
pub(super) enum Take {
    /// It was free, and is the caller's now.
    Taken,
    /// The id that holds it; the caller's own if the very same message was written before.
    Holder(Uuid),
    /// Another transaction has it and may still roll back.
    Wait,
}

impl Dedup {
    /// Takes a key for `id` in the transaction `tx`.
    pub(super) fn take(&mut self, once: &Once, id: Uuid, tx: u64, now: Micros) -> Take {
        if let Some((holder, by)) = self.taken.get(once) {
            return if *by == tx { Take::Holder(*holder) } else { Take::Wait };
        }
        match self.held.get(once) {
            Some((holder, until)) if *until > now => Take::Holder(*holder),
            Some(_) | None => {
                self.taken.insert(once.clone(), (id, tx));
                Take::Taken
            }
        }
    }

    /// The transaction is over: its keys are held from now on, or free again.
    pub(super) fn end(&mut self, tx: u64, committed: bool, now: Micros) {
        let until = now.saturating_add(self.window);
        let held = &mut self.held;
        self.taken.retain(|once, (id, by)| {
            if *by == tx && committed {
                held.insert(once.clone(), (*id, until));
            }
            *by != tx
        });
    }
}
