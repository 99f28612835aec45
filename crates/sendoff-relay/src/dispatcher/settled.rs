//! Written results.

use super::decide::effect_on_followers;
use super::order::Followers;
use super::*;
use crate::DeadLetter;
use crate::hooks::Call;
use crate::relay::settle::Written;

impl Dispatcher {
    /// A batch of settlements was written, except those that were refused.
    pub(crate) fn settled(&mut self, decided: Decided, written: &Written, now: Instant) {
        let (report, mut dead, mut refused) = (&written.report, Vec::new(), Vec::new());
        for (at, (id, settlement)) in decided.entries.into_iter().zip(decided.settlements).enumerate() {
            if report.lost.contains(&settlement.row_ref.lane) {
                continue;
            }
            if written.refused.binary_search(&at).is_ok() {
                refused.push((id, settlement));
                continue;
            }
            if !settlement.deliveries.is_empty() && self.hooks.has_hooks() {
                dead.extend(self.dead_deliveries(id));
            }
            // An entry whose lane was lost meanwhile is gone already.
            if self.finish(id) {
                self.gone.push(settlement.row_ref);
            }
        }
        if !dead.is_empty() {
            self.hooks.call(|| Call::DeadBatch(dead.into()));
        }
        self.refuse(refused, now);
        for freed in &report.freed {
            self.order.freed(freed);
        }
        if !report.lost.is_empty() {
            tracing::warn!(event = "lanes_lost", lanes = ?report.lost, "lanes lost: another relay took them over");
            self.lose(&report.lost);
        }
    }

    /// The deliveries of an entry that became dead letters.
    fn dead_deliveries(&self, id: EntryId) -> SmallVec<[DeadLetter; 1]> {
        let Some(entry) = self.entries.get(id) else {
            return SmallVec::new();
        };
        let dead = entry.deliveries.iter().filter_map(|delivery| match &delivery.verdict {
            Some(Verdict::Dead { reason, error, .. }) => Some(DeadLetter {
                outgoing: entry.outgoing.clone(),
                sink: delivery.name.clone(),
                reason: *reason,
                error: error.clone(),
            }),
            _ => None,
        });
        dead.collect()
    }

    fn finish(&mut self, id: EntryId) -> bool {
        let Some(entry) = self.entries.get(id) else {
            return false;
        };
        let mut free = SmallVec::<[Ticket; 1]>::new();
        for (index, delivery) in entry.deliveries.iter().enumerate() {
            let Some(verdict) = &delivery.verdict else { continue };
            // Metrics are counted here as well, so that a count has one value, whoever shows it.
            match verdict {
                Verdict::Delivered => self.report.delivered += 1,
                Verdict::Retry { charged: true, .. } => {
                    self.report.retried += 1;
                    let (outgoing, sink) = (&entry.outgoing, &delivery.name);
                    self.hooks
                        .observe("retried", |observer| observer.retried(outgoing, sink));
                }
                Verdict::Retry { charged: false, .. } | Verdict::Paused { .. } => self.report.deferred += 1,
                Verdict::Dead { reason, .. } => {
                    self.report.dead += 1;
                    self.hooks.observe("dead_lettered", |observer| {
                        observer.dead_lettered(&entry.outgoing, &delivery.name, *reason);
                    });
                }
                Verdict::Blocked => {}
            }
            let followers = effect_on_followers(verdict);
            // Its followers went when it was delivered.
            if followers == Followers::Go {
                continue;
            }
            let Some(at) = entry.key_ref(index) else { continue };
            let ticket = Ticket {
                entry: id,
                delivery: index,
            };
            free.extend(self.order.written(&at, entry.member(ticket), followers));
        }
        for next in free {
            self.advance(next);
        }
        self.drop_entry(id);
        true
    }
}
