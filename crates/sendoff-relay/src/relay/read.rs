//! Reading: when, how much, and how soon again.

use std::time::Duration;

use sendoff::store::{Page, ReadRequest, Row};
use tokio::time::Instant;

use super::event::Event;
use super::running::{BUSY_PAUSE, LONGEST_PAUSE, Running};
use super::trail;
use super::trouble::Step;
use crate::desk::ROW_BYTES;

/// How much longer than it takes the waiting table is left alone after it was looked at, within limits: a read that hung
/// once tells nothing about the table.
const DUE_REST: u32 = 10;

/// How many messages are read at most while a sink is probed: those that are not needed would only go back to wait.
const PROBE_PAGE: usize = 64;

/// How small a part of a page is asked for at least, after reads that failed.
const SMALLEST_PART: usize = 1 << 10;

impl Running {
    pub(super) fn can_read(&self) -> bool {
        self.reader.is_some()
            && self.unsure_page.is_none()
            && self.pauses_known
            && self.desk.lane_count() > 0
            && self.desk.in_hand() + self.settings.batch / 4 <= self.settings.window
            && self.desk.bytes_in_hand() + self.settings.window_bytes / 16 <= self.settings.window_bytes
    }

    pub(super) fn start_reading(&mut self, now: Instant) {
        if now < self.next_poll
            || now >= *self.lease.borrow()
            || !self.can_read()
            || !self.trouble.allows(Step::Read, now)
        {
            return;
        }
        let Some(mut reader) = self.reader.take() else { return };
        self.desk.begin_read();
        reader.lost(&std::mem::take(&mut self.lost));
        reader.gained(&std::mem::take(&mut self.gained));
        let due = now >= self.next_due;
        if due {
            self.next_due = now + self.settings.due_interval;
        }
        let room = self.settings.window - self.desk.in_hand();
        let bytes = ((self.settings.window_bytes - self.desk.bytes_in_hand()) / self.page_part).max(1);
        let affordable = (bytes / self.row_bytes.max(1)).max(1);
        let most = if self.desk.is_probed(now) {
            PROBE_PAGE
        } else {
            usize::MAX
        };
        let request = ReadRequest {
            limit: (self.settings.batch / self.page_part)
                .max(1)
                .min(room)
                .min(affordable)
                .min(most),
            bytes,
            settled: self.desk.take_gone(),
            forgotten: self.desk.take_forgotten(),
            skip_legs: if due { self.desk.shut_sinks(now) } else { Vec::new() },
            due,
            ready: !self.desk.all_shut(now),
        };
        // The ready table is left out only while no sink can be called: then there is nothing to look for in it, and a
        // one-shot run must not wait for a sink that is down.
        let (everywhere, ready) = (request.due, request.ready);
        self.found_nothing = false;
        self.read_begun = now;
        self.tasks.spawn(async move {
            let page = reader.read(request).await;
            Event::Read { reader, page }
        });
        self.looks_everywhere = everywhere;
        self.looks_at_ready = ready;
    }

    /// A page that took too long would do so again: the next one is smaller.
    pub(super) fn ask_for_less(&mut self) {
        self.page_part = (self.page_part * 2).min(SMALLEST_PART);
    }

    pub(super) fn take(&mut self, page: Page) {
        let now = Instant::now();
        self.page_part = (self.page_part / 2).max(1);
        self.found_nothing = page.rows.is_empty() && !page.more && self.looks_everywhere;
        if page.rows.is_empty() {
            self.poll_pause = (self.poll_pause * 2).min(self.settings.idle_time.max(BUSY_PAUSE));
        } else {
            self.poll_pause = BUSY_PAUSE;
            self.learn_row_size(&page);
        }
        if self.looks_everywhere {
            // Rows that wait for a sink which is down are looked at and passed over. Many of them make this slow: it must
            // not be all that the relay and the database do.
            let took = now - self.read_begun;
            self.next_due = self.next_due.max(
                now + (took * DUE_REST).min(if planted!(RestsTooLong) {
                    Duration::MAX
                } else {
                    LONGEST_PAUSE
                }),
            );
        }
        if self.once && page.rows.is_empty() && !self.looks_everywhere {
            self.next_due = now;
        }
        self.next_poll = if page.more { now } else { now + self.poll_pause };
        // A lane that was lost while the read was under way may have been gained anew since: its rows are read again.
        let mut rows = page.rows;
        if !self.lost.is_empty() {
            rows.retain(|row| !self.lost.contains(&row.place().lane));
        }
        let all = self.looks_at_ready && !page.more;
        let claimed = self.watched.read(self.read_begun, now, all);
        if self.stopping.is_none() {
            trail::read(&rows);
            self.desk.claim(claimed);
            self.admit_page(rows, now);
        }
    }

    /// A message that has no route is a dead letter, unless another relay has one: that is known for sure from a heartbeat that
    /// is younger than the message. Until then the page waits, and nothing more is read.
    fn admit_page(&mut self, rows: Vec<Row>, now: Instant) {
        if self.beat_sent < self.read_begun && self.desk.has_unroutable(&rows) {
            self.unsure_page = Some(rows);
            self.next_beat = now;
            return;
        }
        self.desk.note_batches(&self.with_sink);
        self.desk.take(rows, now);
    }

    /// A heartbeat has come back: a page that waited for it is taken in.
    pub(super) fn admit_unsure_page(&mut self) {
        if let Some(mut rows) = self.unsure_page.take() {
            // Lanes may have been lost meanwhile, and gained again: their rows are read again.
            rows.retain(|row| !self.lost.contains(&row.place().lane));
            self.admit_page(rows, Instant::now());
        }
    }

    /// Large messages make small pages: rows that do not fit would be looked at in vain.
    pub(super) fn learn_row_size(&mut self, page: &Page) {
        let bytes: usize = page.rows.iter().map(Row::bytes).sum();
        let average = bytes / page.rows.len() + ROW_BYTES;
        self.row_bytes = if average > self.row_bytes {
            average
        } else {
            (self.row_bytes * 3 + average) / 4
        };
    }
}
