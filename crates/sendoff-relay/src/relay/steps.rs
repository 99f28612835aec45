//! What comes back, and what is started next.

use sendoff::store::Heartbeat;
use sendoff::{Error, Result};
use tokio::time::Instant;

use super::event::Event;
use super::janitors::{CLEAN_PAUSE, RECHECK_REST};
use super::running::Running;
use super::trail;
use super::trouble::Step;
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
            self.start_quarantine(now);
            self.start_reading(now);
            self.start_sweep(now);
            self.start_recheck(now);
            self.start_cleaning(now);
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Beat { sent, beat, evicted } => {
                if let Err(error) = evicted {
                    self.complain(Step::Evict, error);
                }
                self.beaten(sent, beat);
            }
            Event::Anew { sent, retired, beat } => {
                self.former.retain(|owner| !retired.contains(owner));
                self.beaten(sent, beat);
            }
            Event::Retired { owner, retired } => {
                self.retiring = false;
                match retired {
                    Ok(()) => self.former.retain(|other| *other != owner),
                    Err(error) => _ = self.complain(Step::Retire, error),
                }
            }
            Event::Acquired(acquired) => {
                self.acquiring = false;
                let void = std::mem::take(&mut self.void_grants);
                match acquired {
                    Ok(_) if void => self.unsure = true,
                    Ok((grants, blocked)) => self.gain(&grants, blocked),
                    Err(error) => {
                        // Lanes may be ours without our knowing of them: they would be nobody's.
                        self.unsure = !planted!(LostAnswerForgotten);
                        self.complain(Step::Acquire, error);
                    }
                }
            }
            Event::Disowned(disowned) => {
                self.acquiring = false;
                match disowned {
                    Ok(()) => {
                        self.unsure = std::mem::take(&mut self.void_grants);
                        self.hurry_anew();
                    }
                    Err(error) => _ = self.complain(Step::Disown, error),
                }
            }
            Event::Released(lanes, released) => {
                self.releasing = false;
                let void = std::mem::take(&mut self.void_release);
                match released {
                    // They are given back once more: the history that has them now may not know that they were.
                    Ok(()) if void => {}
                    Ok(()) => {
                        self.lose(&lanes);
                        self.hurry_anew();
                    }
                    Err(error) => _ = self.complain(Step::Release, error),
                }
            }
            Event::Read { reader, page } => {
                self.reader = Some(reader);
                match page {
                    Ok(page) if page.history_changed => self.read_another_history(),
                    Ok(page) => {
                        self.reader_is_behind = false;
                        self.succeeded(Step::Read, self.read_begun);
                        self.take(page);
                    }
                    Err(error) => {
                        self.ask_for_less();
                        self.next_poll = self.complain(Step::Read, error);
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
                        self.desk.begin_answers(sink, &outcomes, begun);
                        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
                            trail::answered(&self.desk, sink, ticket, &outcome);
                            self.desk.outcome(sink, ticket, outcome, now);
                        }
                        self.desk.answered(sink);
                    }
                    Published::LeaseOver => {
                        self.desk.dropped(sink);
                        for ticket in tickets {
                            trail::not_sent(&self.desk, sink, ticket);
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
                trail::settled(&decided.settlements, &written.refused);
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
            Event::Suspected { void, noted } => {
                self.suspecting = false;
                match (noted, void) {
                    (Ok(()), Some(_)) => {}
                    (Ok(()), None) => self.desk.group_noted(Instant::now()),
                    (Err(error), void) => {
                        self.complain(Step::Suspect, error);
                        match void {
                            Some(lane) => self.desk.note_stays(lane),
                            None => self.desk.group_not_noted(),
                        }
                    }
                }
            }
            // What could not be written costs a quarantine more, after the next crash.
            Event::Absolved(lanes, absolved) => {
                self.suspecting = false;
                match absolved {
                    Ok(()) => tracing::info!(
                        event = "quarantine_ended",
                        lanes = lanes.len(),
                        "lanes have no crashes any more"
                    ),
                    Err(error) => _ = self.complain(Step::Absolve, error),
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
                    Err(error) => _ = self.complain(Step::Sweep, error),
                }
            }
            Event::Rechecked { begun, lanes, blocked } => {
                self.rechecking = false;
                let now = Instant::now();
                self.next_recheck = self.next_recheck.max(now + (now - begun) * RECHECK_REST);
                match blocked {
                    Ok(blocked) => self.desk.recheck(&lanes, blocked),
                    Err(error) => _ = self.complain(Step::Recheck, error),
                }
            }
            Event::Paused { asked, paused } => {
                self.asking = false;
                match paused {
                    Ok(paused) => self.heed(&paused, asked),
                    Err(error) => _ = self.complain(Step::Pauses, error),
                }
            }
            Event::Cleaned(cleaned) => {
                self.cleaning = false;
                match cleaned {
                    Ok(true) => self.next_clean = Instant::now() + CLEAN_PAUSE,
                    Ok(false) => {}
                    Err(error) => _ = self.complain(Step::Clean, error),
                }
            }
        }
    }

    /// A heartbeat has come back.
    fn beaten(&mut self, sent: Instant, beat: Result<Heartbeat>) {
        self.beating = false;
        match beat {
            Ok(beat) if beat.alive => {
                self.succeeded(Step::Heartbeat, sent);
                self.alive(sent, &beat);
            }
            Ok(_) => {
                tracing::warn!(event = "lease_lost", owner = %self.owner, "the lease ran out; starting anew");
                self.start_anew();
            }
            Err(error) => {
                self.complain(Step::Heartbeat, error);
            }
        }
    }

    /// Trouble is tried again for as long as it takes; but somebody waits for a run that does what is due and ends. Returns
    /// when to try again.
    fn complain(&mut self, step: Step, error: Error) -> Instant {
        let again = self.trouble.failed(step, &error, Instant::now());
        if self.once && !error.is_temporary() && self.stopping.is_none() {
            self.failure = Some(error);
            self.begin_to_stop();
        }
        again
    }

    /// After an outage everything is looked at right away.
    fn succeeded(&mut self, step: Step, begun: Instant) {
        let now = Instant::now();
        if self.trouble.succeeded(step, begun, now) {
            (self.next_poll, self.next_due, self.next_beat) = (now, now, now);
        }
    }

    /// Somebody waits for a run that does what is due and ends: it tells that the database refuses.
    fn give_up_refused(&mut self, written: &mut Written) {
        if self.once && self.failure.is_none() {
            self.failure = written.refusal.take();
        }
    }
}
