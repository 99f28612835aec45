//! What comes back, and what is started next.

use sendoff::Error;
use tokio::time::Instant;

use super::event::Event;
use super::janitors::{CLEAN_PAUSE, RECHECK_REST};
use super::running::{LONGEST_PAUSE, Running};
use crate::publish::Published;
use crate::settle::Written;

impl Running {
    pub(super) fn start_what_can_be_started(&mut self, now: Instant) {
        self.start_beat(now);
        self.start_publishing(now);
        self.start_settling(now);
        self.start_releasing();
        self.start_asking();
        if self.stopping.is_none() {
            self.start_careful();
            self.start_reading(now);
            self.start_sweep(now);
            self.start_recheck(now);
            self.start_cleaning(now);
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
                    Err(error) => self.complain("heartbeat", error),
                }
            }
            Event::Acquired(acquired) => {
                self.acquiring = false;
                match acquired {
                    Ok((grants, blocked)) => self.gain(&grants, blocked),
                    Err(error) => {
                        // Lanes may be ours without our knowing of them: they would be nobody's.
                        self.unsure = true;
                        self.complain("acquire", error);
                    }
                }
            }
            Event::Disowned(disowned) => {
                self.acquiring = false;
                match disowned {
                    Ok(()) => {
                        self.unsure = false;
                        self.hurry_anew();
                    }
                    Err(error) => self.complain("disown", error),
                }
            }
            Event::Released(lanes, released) => {
                self.releasing = false;
                match released {
                    Ok(()) => {
                        self.lose(&lanes);
                        self.hurry_anew();
                    }
                    Err(error) => self.complain("release", error),
                }
            }
            Event::Read { reader, page } => {
                self.reader = Some(reader);
                match page {
                    Ok(page) if page.history_changed => self.read_another_history(),
                    Ok(page) => {
                        self.reader_is_behind = false;
                        self.take(page);
                    }
                    Err(error) => {
                        self.complain("read", error);
                        self.read_pause = (self.read_pause * 2).clamp(self.settings.idle_time, LONGEST_PAUSE);
                        self.next_poll = Instant::now() + self.read_pause;
                    }
                }
            }
            Event::Published {
                sink,
                tickets,
                begun,
                published,
            } => {
                self.with_sink[sink] -= 1;
                let now = Instant::now();
                match published {
                    Published::Answered(outcomes) => {
                        self.desk.tell_published(sink, &tickets, &outcomes, begun, now);
                        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
                            self.desk.outcome(sink, ticket, outcome, now);
                        }
                        self.desk.answered(sink);
                    }
                    Published::LeaseOver => {
                        self.desk.dropped(sink);
                        for ticket in tickets {
                            self.desk.not_sent(ticket);
                        }
                    }
                }
            }
            Event::Settled(decided, mut written) => {
                self.settling = false;
                let count = decided.items.len() - written.refused.len();
                self.settled_meanwhile += count;
                self.tell_settled(count, &written.report);
                self.desk.settled(decided, &written, Instant::now());
                self.give_up_refused(&mut written);
                let report = written.report;
                // The store may think otherwise, if only this relay's own deadline had passed: then they are given back.
                self.unsure |= !report.lost.is_empty();
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
                        self.complain("suspect", error);
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
                    Err(error) => self.complain("sweep", error),
                }
            }
            Event::Rechecked { begun, lanes, blocked } => {
                self.rechecking = false;
                let now = Instant::now();
                self.next_recheck = self.next_recheck.max(now + (now - begun) * RECHECK_REST);
                match blocked {
                    Ok(blocked) => self.desk.recheck(&lanes, blocked),
                    Err(error) => self.complain("recheck", error),
                }
            }
            Event::Paused { asked, paused } => {
                self.asking = false;
                match paused {
                    Ok(paused) => self.heed(&paused, asked),
                    Err(error) => self.complain("paused", error),
                }
            }
            Event::Cleaned(cleaned) => {
                self.cleaning = false;
                match cleaned {
                    Ok(true) => self.next_clean = Instant::now() + CLEAN_PAUSE,
                    Ok(false) => {}
                    Err(error) => self.complain("clean", error),
                }
            }
            Event::Chore(done) => {
                if let Err(error) = done {
                    self.complain("chore", error);
                }
            }
        }
    }

    /// Trouble is tried again for as long as it takes; but somebody waits for a run that does what is due and ends.
    fn complain(&mut self, step: &'static str, error: Error) {
        tracing::warn!(event = "step_failed", step, %error, "tried again later");
        if self.once && !error.is_temporary() && self.stopping.is_none() {
            self.failure = Some(error);
            self.begin_to_stop();
        }
    }

    /// Somebody waits for a run that does what is due and ends: it tells that the database refuses.
    fn give_up_refused(&mut self, written: &mut Written) {
        if self.once && self.failure.is_none() {
            self.failure = written.refusal.take();
        }
    }
}
