//! Reading: when, how much, and when again.

use std::time::Duration;

use sendoff::store::{Page, ReadRequest, Row};
use tokio::time::Instant;

use super::event::Event;
use super::running::{BUSY_PAUSE, LONGEST_PAUSE, Running};
use super::trail;
use super::trouble::Step;
use crate::dispatcher::ROW_BYTES;

/// After a read of the waiting table, wait this many times its duration, within limits: one read that hung proves nothing
/// about the table.
const DUE_REST: u32 = 10;

/// The largest read while a sink is probed: further messages would only be deferred again.
const PROBE_PAGE: usize = 64;

/// The smallest part of a page, after failed reads.
const SMALLEST_PART: usize = 1 << 10;

impl Running {
    pub(super) fn can_read(&self) -> bool {
        self.reading.reader.is_some()
            && self.reading.unsure_page.is_none()
            && self.pauses.known
            && self.dispatcher.lane_count() > 0
            && self.dispatcher.in_flight() + self.settings.batch / 4 <= self.settings.max_in_flight
            && self.dispatcher.bytes_in_flight() + self.settings.max_in_flight_bytes / 16
                <= self.settings.max_in_flight_bytes
    }

    pub(super) fn start_reading(&mut self, now: Instant) {
        if now < self.pace.next_poll
            || now >= *self.registration.lease.borrow()
            || !self.can_read()
            || !self.trouble.allows(Step::Read, now)
        {
            return;
        }
        let Some(mut reader) = self.reading.reader.take() else {
            return;
        };
        self.dispatcher.begin_read();
        reader.lost(&std::mem::take(&mut self.reading.lost));
        reader.gained(&std::mem::take(&mut self.reading.gained));
        let due = now >= self.pace.next_due;
        if due {
            self.pace.next_due = now + self.settings.due_interval;
        }
        let table = self.settings.max_in_flight - self.dispatcher.in_flight();
        let bytes =
            ((self.settings.max_in_flight_bytes - self.dispatcher.bytes_in_flight()) / self.pace.page_part).max(1);
        let affordable = (bytes / self.pace.row_bytes.max(1)).max(1);
        let most = if self.dispatcher.is_probed(now) {
            PROBE_PAGE
        } else {
            usize::MAX
        };
        let request = ReadRequest {
            limit: (self.settings.batch / self.pace.page_part)
                .max(1)
                .min(table)
                .min(affordable)
                .min(most),
            bytes,
            settled: self.dispatcher.take_gone(),
            forgotten: self.dispatcher.take_forgotten(),
            skip_sinks: if due {
                self.dispatcher.shut_sinks(now)
            } else {
                Vec::new()
            },
            due,
            ready: !self.dispatcher.all_shut(now),
        };
        // The read skips the ready table only while no sink can be called: its messages could not be sent, and a one-shot run
        // must not wait for a sink that is down.
        let (everywhere, ready) = (request.due, request.ready);
        self.reading.found_nothing = false;
        self.reading.begun = now;
        self.under_way.tasks.spawn(async move {
            let page = reader.read(request).await;
            Event::Read { reader, page }
        });
        self.reading.everywhere = everywhere;
        self.reading.ready = ready;
    }

    /// A page that took too long would take too long again: the next one is smaller.
    pub(super) fn ask_for_less(&mut self) {
        self.pace.page_part = (self.pace.page_part * 2).min(SMALLEST_PART);
    }

    pub(super) fn take(&mut self, page: Page) {
        let now = Instant::now();
        self.pace.page_part = (self.pace.page_part / 2).max(1);
        self.reading.found_nothing = page.rows.is_empty() && !page.more && self.reading.everywhere;
        if page.rows.is_empty() {
            self.pace.poll_pause = (self.pace.poll_pause * 2).min(self.settings.idle_time.max(BUSY_PAUSE));
        } else {
            self.pace.poll_pause = BUSY_PAUSE;
            self.learn_row_size(&page);
        }
        if self.reading.everywhere {
            // A read skips rows that wait for a sink that is down. Many of them make it slow: reading must not take all the
            // time of the relay and the database.
            let took = now - self.reading.begun;
            self.pace.next_due = self.pace.next_due.max(
                now + (took * DUE_REST).min(if planted!(RestsTooLong) {
                    Duration::MAX
                } else {
                    LONGEST_PAUSE
                }),
            );
        }
        if self.once && page.rows.is_empty() && !self.reading.everywhere {
            self.pace.next_due = now;
        }
        self.pace.next_poll = if page.more { now } else { now + self.pace.poll_pause };
        // A lane that was lost during the read may have been gained again since: its rows are read again.
        let mut rows = page.rows;
        if !self.reading.lost.is_empty() {
            rows.retain(|row| !self.reading.lost.contains(&row.row_ref().lane));
        }
        let all = self.reading.ready && !page.more;
        let claimed = self.watched.read(self.reading.begun, now, all);
        if self.ending.stopping.is_none() {
            trail::read(&rows);
            self.dispatcher.claim(claimed);
            self.admit_page(rows, now);
        }
    }

    /// A message without a route is a dead letter, unless another relay has a route. Only a heartbeat that is younger than the
    /// message shows that for certain. Until then the page waits, and nothing more is read.
    fn admit_page(&mut self, rows: Vec<Row>, now: Instant) {
        if self.registration.beat_sent < self.reading.begun && self.dispatcher.has_unroutable(&rows) {
            self.reading.unsure_page = Some(rows);
            self.registration.next_beat = now;
            return;
        }
        self.dispatcher.note_batches(&self.under_way.with_sink);
        self.dispatcher.take(rows, now);
    }

    /// A heartbeat was answered: a page that waited for it is admitted.
    pub(super) fn admit_unsure_page(&mut self) {
        if let Some(mut rows) = self.reading.unsure_page.take() {
            // Lanes may have been lost and gained again meanwhile: their rows are read again.
            rows.retain(|row| !self.reading.lost.contains(&row.row_ref().lane));
            self.admit_page(rows, Instant::now());
        }
    }

    /// Large messages make small pages: rows beyond the limit would be read for nothing.
    pub(super) fn learn_row_size(&mut self, page: &Page) {
        let bytes: usize = page.rows.iter().map(Row::bytes).sum();
        let average = bytes / page.rows.len() + ROW_BYTES;
        self.pace.row_bytes = if average > self.pace.row_bytes {
            average
        } else {
            (self.pace.row_bytes * 3 + average) / 4
        };
    }
}
