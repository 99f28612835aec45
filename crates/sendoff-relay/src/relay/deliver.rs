//! Publishing and settling, each as soon as it can go.

use tokio::time::Instant;

use super::event::Event;
use super::running::Running;
use super::trail;
use crate::publish::publish;
use crate::settle::settle;

/// How many rows one settlement transaction takes at most.
const SETTLE_AT_ONCE: usize = 10_000;

impl Running {
    pub(super) fn start_publishing(&mut self, now: Instant) {
        if now >= *self.lease.borrow() && !planted!(LeaseUnchecked) {
            return;
        }
        for sink in 0..self.desk.sink_count() {
            while self.with_sink[sink] < self.desk.sink(sink).settings.concurrency.max(1) {
                let Some(batch) = self.desk.next_batch(sink, now) else {
                    break;
                };
                self.with_sink[sink] += 1;
                let planned = self.desk.sink(sink);
                trail::sent(&planned.name, &batch.deliveries);
                let work = publish(
                    planned.sink.clone(),
                    planned.name.clone(),
                    batch.deliveries,
                    planned.settings.timeout,
                    self.lease.subscribe(),
                    self.followers.clone(),
                );
                let tickets = batch.tickets;
                self.tasks.spawn(async move {
                    Event::Published {
                        sink,
                        tickets,
                        begun: now,
                        published: work.await,
                    }
                });
            }
        }
    }

    pub(super) fn start_settling(&mut self, now: Instant) {
        self.watched.decided(self.desk.has_settlements(), now);
        if self.settling {
            return;
        }
        let decided = match self.desk.take_refused(now) {
            Some(refused) => refused,
            None if self.desk.has_settlements() => self.desk.take_settlements(SETTLE_AT_ONCE),
            None => return,
        };
        self.settling = true;
        trail::settling(&decided.settlements);
        self.watched.settling(!self.desk.has_settlements(), now);
        let work = settle(self.store.clone(), self.owner, decided, self.lease.subscribe());
        self.tasks.spawn(async move {
            let (decided, written) = work.await;
            Event::Settled(decided, written)
        });
    }
}
