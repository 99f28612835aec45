//! The steps of the loop: what is started when, and what is done with what comes back.

use sendoff::Error;
use sendoff::store::{BlockedKey, Heartbeat, Lane, LaneGrant, OwnerId, Page, ReadRequest};
use tokio::time::Instant;

use super::event::Event;
use super::running::{BUSY_PAUSE, LONGEST_PAUSE, Running, publishing_time};
use crate::lease::fair_share;
use crate::publish::{Published, publish};
use crate::settle::settle;

/// How many rows one settlement transaction takes at most.
const SETTLE_AT_ONCE: usize = 10_000;

impl Running {
    pub(super) fn start_what_can_be_started(&mut self, now: Instant) {
        self.start_beat(now);
        self.start_publishing(now);
        self.start_settling();
        self.start_releasing();
        if self.stopping.is_none() {
            self.start_careful();
            self.start_reading(now);
            self.start_sweep(now);
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Beat { sent, beat } => {
                self.beating = false;
                match beat {
                    Ok(beat) if beat.alive => self.alive(sent, &beat),
                    Ok(_) => {
                        tracing::warn!(event = "lease_lost", owner = %self.owner, "the lease ran out; starting anew");
                        self.start_anew();
                    }
                    Err(error) => self.complain("heartbeat", &error),
                }
            }
            Event::Acquired(acquired) => {
                self.acquiring = false;
                match acquired {
                    Ok((grants, blocked)) => self.gain(&grants, blocked),
                    Err(error) => self.complain("acquire", &error),
                }
            }
            Event::Released(lanes, released) => {
                self.releasing = false;
                match released {
                    Ok(()) => self.lose(&lanes),
                    Err(error) => self.complain("release", &error),
                }
            }
            Event::Read { reader, page } => {
                self.reader = Some(reader);
                match page {
                    Ok(page) => self.take(page),
                    Err(error) => {
                        self.complain("read", &error);
                        self.read_pause = (self.read_pause * 2).clamp(self.settings.idle_time, LONGEST_PAUSE);
                        self.next_poll = Instant::now() + self.read_pause;
                    }
                }
            }
            Event::Published {
                sink,
                tickets,
                published,
            } => {
                self.with_sink[sink] -= 1;
                let now = Instant::now();
                match published {
                    Published::Answered(outcomes) => {
                        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
                            self.desk.outcome(ticket, outcome, now);
                        }
                    }
                    Published::LeaseOver => {
                        let forgotten = tickets.into_iter().filter_map(|ticket| self.desk.not_sent(ticket));
                        self.forgotten.extend(forgotten);
                    }
                }
            }
            Event::Settled(settlements, report) => {
                self.settling = false;
                self.desk.settled(&settlements, &report);
                self.lose(&report.lost);
                if report.woke {
                    self.next_due = Instant::now();
                    self.next_poll = self.next_due;
                }
            }
            Event::Suspected(noted) => {
                self.suspecting = false;
                match noted {
                    Ok(()) => self.desk.admit_careful(Instant::now()),
                    Err(error) => {
                        self.complain("suspect", &error);
                        self.desk.careful_failed();
                    }
                }
            }
            Event::Swept(swept) => {
                self.sweeping = false;
                match swept {
                    Ok(0) => {}
                    Ok(count) => {
                        tracing::info!(
                            event = "orphans_released",
                            count,
                            "held messages that nothing holds are due again"
                        );
                        self.next_due = Instant::now();
                    }
                    Err(error) => self.complain("sweep", &error),
                }
            }
            Event::Paused(paused) => match paused {
                Ok(names) => self.desk.pause(&names),
                Err(error) => self.complain("paused", &error),
            },
            Event::Chore(done) => {
                if let Err(error) = done {
                    self.complain("chore", &error);
                }
            }
        }
    }

    fn complain(&self, step: &'static str, error: &Error) {
        tracing::warn!(event = "step_failed", step, %error, "tried again later");
    }

    // --- the lease -------------------------------------------------------------------------------------------------

    fn start_beat(&mut self, now: Instant) {
        if self.beating || now < self.next_beat {
            return;
        }
        self.beating = true;
        self.next_beat = now + self.settings.heartbeat;
        let (store, owner, lease) = (self.store.clone(), self.owner, self.settings.lease);
        self.tasks.spawn(async move {
            let sent = Instant::now();
            let beat = store.heartbeat(owner, lease).await;
            // Lanes of relays that are gone become free right away, for the acquisition that follows.
            if beat.as_ref().is_ok_and(|beat| beat.alive)
                && let Err(error) = store.evict().await
            {
                tracing::warn!(event = "step_failed", step = "evict", %error, "tried again later");
            }
            Event::Beat { sent, beat }
        });
    }

    fn alive(&mut self, sent: Instant, beat: &Heartbeat) {
        self.lease.send_replace(sent + publishing_time(self.settings.lease));
        if self.stopping.is_some() {
            return;
        }
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let paused = store.paused().await;
            let sinks =
                |all: Vec<(String, String)>| all.into_iter().filter(|(kind, _)| kind == "sink").map(|(_, name)| name);
            Event::Paused(paused.map(|all| sinks(all).collect()))
        });
        let absolved = self.desk.absolve();
        if !absolved.is_empty() {
            let (store, owner) = (self.store.clone(), self.owner);
            self.tasks
                .spawn(async move { Event::Chore(store.absolve(owner, &absolved).await) });
        }
        let share = fair_share(self.store.lanes(), &beat.relays, self.owner);
        let mine = self.desk.staying();
        if mine.len() > share {
            let surplus: Vec<Lane> = mine[share..].to_vec();
            tracing::debug!(
                event = "lanes_shared",
                giving = surplus.len(),
                relays = beat.relays.len(),
                "sharing lanes"
            );
            self.desk.leave(&surplus);
        } else if mine.len() < share && !self.acquiring {
            self.start_acquiring(share - mine.len());
        } else {
            self.settled_in = true;
        }
    }

    fn start_acquiring(&mut self, limit: usize) {
        self.acquiring = true;
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks.spawn(async move {
            let acquired = async {
                let grants = store.acquire(owner, limit).await?;
                let lanes: Vec<Lane> = grants.iter().map(|grant| grant.lane).collect();
                let blocked = if lanes.is_empty() {
                    Vec::new()
                } else {
                    store.blocked_keys(&lanes).await?
                };
                Ok((grants, blocked))
            };
            Event::Acquired(acquired.await)
        });
    }

    fn gain(&mut self, grants: &[LaneGrant], blocked: Vec<BlockedKey>) {
        self.settled_in = true;
        self.found_nothing = false;
        if grants.is_empty() {
            return;
        }
        tracing::info!(event = "lanes_gained", count = grants.len(), "lanes leased");
        self.desk.gain(grants, blocked);
        self.gained.extend_from_slice(grants);
        self.next_poll = Instant::now();
        self.next_due = self.next_poll;
    }

    fn start_releasing(&mut self) {
        let lanes = if self.releasing || self.stopping.is_some() {
            Vec::new()
        } else {
            self.desk.ready_to_leave()
        };
        if lanes.is_empty() {
            return;
        }
        self.releasing = true;
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks.spawn(async move {
            let released = store.release(owner, &lanes).await;
            Event::Released(lanes, released)
        });
    }

    fn lose(&mut self, lanes: &[Lane]) {
        if lanes.is_empty() {
            return;
        }
        self.desk.lose(lanes);
        self.gained.retain(|grant| !lanes.contains(&grant.lane));
        self.lost.extend_from_slice(lanes);
    }

    /// Everything that hung on the lease is lost: another life begins, under another name.
    pub(super) fn start_anew(&mut self) {
        self.tasks.abort_all();
        self.tasks = tokio::task::JoinSet::new();
        let lanes: Vec<Lane> = (0..self.store.lanes()).collect();
        self.lose(&lanes);
        self.reader = Some(self.store.reader());
        (self.gained, self.lost, self.forgotten) = Default::default();
        let _ = self.desk.take_gone();
        self.with_sink.fill(0);
        (
            self.acquiring,
            self.releasing,
            self.settling,
            self.suspecting,
            self.sweeping,
        ) = (false, false, false, false, false);
        self.owner = OwnerId::random();
        self.lease.send_replace(Instant::now());
        self.beating = true;
        let (store, owner, name, lease) = (self.store.clone(), self.owner, self.name.clone(), self.settings.lease);
        self.tasks.spawn(async move {
            let sent = Instant::now();
            let beat = match store.enlist(owner, &name, lease).await {
                Ok(()) => store.heartbeat(owner, lease).await,
                Err(error) => Err(error),
            };
            Event::Beat { sent, beat }
        });
    }

    // --- reading ---------------------------------------------------------------------------------------------------

    pub(super) fn can_read(&self) -> bool {
        self.reader.is_some()
            && self.desk.lane_count() > 0
            && self.desk.in_hand() + self.settings.batch / 4 <= self.settings.window
            && self.desk.bytes_in_hand() < self.settings.window_bytes
    }

    fn start_reading(&mut self, now: Instant) {
        if now < self.next_poll || now >= *self.lease.borrow() || !self.can_read() {
            return;
        }
        let Some(mut reader) = self.reader.take() else { return };
        reader.lost(&std::mem::take(&mut self.lost));
        reader.gained(&std::mem::take(&mut self.gained));
        let due = now >= self.next_due;
        if due {
            self.next_due = now + self.settings.due_interval;
        }
        let room = self.settings.window - self.desk.in_hand();
        let affordable = (self.settings.window_bytes - self.desk.bytes_in_hand()) / self.row_bytes.max(1);
        let request = ReadRequest {
            limit: self.settings.batch.min(room).min(affordable.max(16)),
            settled: self.desk.take_gone(),
            forgotten: std::mem::take(&mut self.forgotten),
            skip_legs: if due { self.desk.shut_sinks(now) } else { Vec::new() },
            due,
            ready: !self.desk.all_shut(now),
        };
        let everywhere = request.due && request.ready;
        self.found_nothing = false;
        self.tasks.spawn(async move {
            let page = reader.read(request).await;
            Event::Read { reader, page }
        });
        self.looks_everywhere = everywhere;
    }

    fn take(&mut self, page: Page) {
        let now = Instant::now();
        self.read_pause = Default::default();
        self.found_nothing = page.rows.is_empty() && !page.more && self.looks_everywhere;
        if page.rows.is_empty() {
            self.poll_pause = (self.poll_pause * 2).min(self.settings.idle_time.max(BUSY_PAUSE));
        } else {
            self.poll_pause = BUSY_PAUSE;
            self.learn_row_size(&page);
        }
        if self.once && page.rows.is_empty() && !self.looks_everywhere {
            self.next_due = now;
        }
        self.next_poll = if page.more { now } else { now + self.poll_pause };
        // A lane that was lost while the read was under way may have been gained anew since: its rows are read again.
        let mut rows = page.rows;
        rows.retain(|row| !self.lost.contains(&row.place().lane));
        if self.stopping.is_none() {
            self.desk.take(rows, now);
        }
    }

    /// Large payloads make small pages, so that memory stays bounded; one page late, hence the small first one.
    fn learn_row_size(&mut self, page: &Page) {
        let bytes: usize = page
            .rows
            .iter()
            .map(|row| match row {
                sendoff::store::Row::Message(delivery) | sendoff::store::Row::Expired(delivery) => {
                    delivery.payload.len()
                }
                sendoff::store::Row::Unreadable { .. } => 0,
            })
            .sum();
        let average = bytes / page.rows.len() + 256;
        self.row_bytes = if average > self.row_bytes {
            average
        } else {
            (self.row_bytes * 3 + average) / 4
        };
    }

    // --- publishing, settling, janitors ------------------------------------------------------------------------------

    fn start_publishing(&mut self, now: Instant) {
        if now >= *self.lease.borrow() {
            return;
        }
        for sink in 0..self.desk.sink_count() {
            while self.with_sink[sink] < self.desk.sink(sink).settings.concurrency.max(1) {
                let Some(batch) = self.desk.next_batch(sink, now) else {
                    break;
                };
                self.with_sink[sink] += 1;
                let planned = self.desk.sink(sink);
                let work = publish(
                    planned.sink.clone(),
                    batch.deliveries,
                    planned.settings.timeout,
                    self.lease.subscribe(),
                );
                let tickets = batch.tickets;
                self.tasks.spawn(async move {
                    Event::Published {
                        sink,
                        tickets,
                        published: work.await,
                    }
                });
            }
        }
    }

    fn start_settling(&mut self) {
        if self.settling || !self.desk.has_settlements() {
            return;
        }
        self.settling = true;
        let settlements = self.desk.take_settlements(SETTLE_AT_ONCE);
        let work = settle(self.store.clone(), self.owner, settlements, self.lease.subscribe());
        self.tasks.spawn(async move {
            let (settlements, report) = work.await;
            Event::Settled(settlements, report)
        });
    }

    fn start_careful(&mut self) {
        if self.suspecting {
            return;
        }
        let Some((lane, place)) = self.desk.next_careful() else {
            return;
        };
        self.suspecting = true;
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks.spawn(async move {
            Event::Suspected(
                store
                    .suspect(owner, lane, Some((place.seq, place.leg.as_deref())))
                    .await,
            )
        });
    }

    fn start_sweep(&mut self, now: Instant) {
        if self.sweeping || now < self.next_sweep {
            return;
        }
        self.sweeping = true;
        self.next_sweep = now + self.settings.sweep;
        let (store, owner, lanes) = (self.store.clone(), self.owner, self.desk.staying());
        self.tasks
            .spawn(async move { Event::Swept(store.release_orphans(owner, &lanes).await) });
    }
}
