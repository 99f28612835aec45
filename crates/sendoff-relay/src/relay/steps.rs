//! Results of work, and the work that is started next.

use sendoff::store::Heartbeat;
use sendoff::{Error, Result};
use tokio::time::Instant;

use super::event::Event;
use super::janitors::{CLEAN_PAUSE, RECHECK_REST};
use super::publish::Published;
use super::running::Running;
use super::settle::Written;
use super::trail;
use super::trouble::Step;

impl Running {
    pub(super) fn start_what_can_be_started(&mut self, now: Instant) {
        self.start_beat(now);
        self.start_publishing(now);
        self.start_settling(now);
        self.start_releasing();
        self.start_asking();
        if self.ending.stopping.is_none() {
            self.start_quarantine(now);
            self.start_reading(now);
            self.start_sweep(now);
            self.start_recheck(now);
            self.start_cleaning(now);
            self.start_figures(now);
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
            Event::Anew {
                sent,
                deregistered,
                beat,
            } => {
                self.registration.former.retain(|owner| !deregistered.contains(owner));
                self.beaten(sent, beat);
            }
            Event::Deregistered { owner, deregistered } => {
                self.under_way.deregister = false;
                match deregistered {
                    Ok(()) => self.registration.former.retain(|other| *other != owner),
                    Err(error) => _ = self.complain(Step::Deregister, error),
                }
            }
            Event::Acquired(acquired) => {
                self.under_way.acquire = false;
                let void = std::mem::take(&mut self.holding.void_grants);
                match acquired {
                    Ok(_) if void => self.holding.unsure = true,
                    Ok((grants, blocked)) => self.gain(&grants, blocked),
                    Err(error) => {
                        // This relay may hold lanes without knowing it: no relay would read them.
                        self.holding.unsure = !planted!(LostAnswerForgotten);
                        self.complain(Step::Acquire, error);
                    }
                }
            }
            Event::Disowned(disowned) => {
                self.under_way.acquire = false;
                match disowned {
                    Ok(()) => {
                        self.holding.unsure = std::mem::take(&mut self.holding.void_grants);
                        self.hurry_anew();
                    }
                    Err(error) => _ = self.complain(Step::Disown, error),
                }
            }
            Event::Released(lanes, released) => {
                self.under_way.release = false;
                let void = std::mem::take(&mut self.holding.void_release);
                match released {
                    // They are given back again: the new history may not know that they were.
                    Ok(()) if void => {}
                    Ok(()) => {
                        self.lose(&lanes);
                        self.left_to_others(&lanes);
                        self.hurry_anew();
                    }
                    Err(error) => _ = self.complain(Step::Release, error),
                }
            }
            Event::Read { reader, page } => {
                self.reading.reader = Some(reader);
                match page {
                    Ok(page) if page.history_changed => self.read_another_history(),
                    Ok(page) => {
                        self.reading.is_behind = false;
                        self.figures.read(&page);
                        self.succeeded(Step::Read, self.reading.begun);
                        self.take(page);
                    }
                    Err(error) => {
                        self.ask_for_less();
                        self.pace.next_poll = self.complain(Step::Read, error);
                    }
                }
            }
            Event::Published {
                sink,
                tickets,
                begun,
                published,
            } => {
                self.under_way.with_sink[sink] -= 1;
                let now = Instant::now();
                match published {
                    Published::Answered(outcomes) => {
                        self.dispatcher.tell_published(sink, &tickets, &outcomes, begun, now);
                        self.figures.answered(sink, &outcomes, now);
                        self.dispatcher.begin_answers(sink, &outcomes, begun);
                        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
                            trail::answered(&self.dispatcher, sink, ticket, &outcome);
                            self.dispatcher.outcome(sink, ticket, outcome, now);
                        }
                        self.dispatcher.answered(sink);
                    }
                    Published::LeaseOver => {
                        self.dispatcher.dropped(sink);
                        for ticket in tickets {
                            trail::not_sent(&self.dispatcher, sink, ticket);
                            self.dispatcher.not_sent(ticket);
                        }
                    }
                }
            }
            Event::Settled(decided, mut written) => {
                self.under_way.settle = false;
                let count = decided.entries.len() - written.refused.len();
                self.janitors.settled_meanwhile += count;
                self.tell_settled(count, &written.report);
                trail::settled(&decided.settlements, &written.refused);
                self.dispatcher.settled(decided, &written, Instant::now());
                self.give_up_refused(&mut written);
                let report = written.report;
                // The store may still grant them, if only this relay's own deadline had passed: then they are given back.
                self.holding.unsure |= !report.lost.is_empty();
                self.lose(&report.lost);
                if report.woke {
                    self.pace.next_due = Instant::now();
                    self.pace.next_poll = self.pace.next_due;
                }
            }
            Event::Quarantined { void, noted } => {
                self.under_way.quarantine = false;
                match (noted, void) {
                    (Ok(()), Some(_)) => {}
                    (Ok(()), None) => self.dispatcher.group_noted(Instant::now()),
                    (Err(error), void) => {
                        self.complain(Step::Quarantined, error);
                        match void {
                            Some(lane) => self.dispatcher.note_stays(lane),
                            None => self.dispatcher.group_not_noted(),
                        }
                    }
                }
            }
            // If this fails, the only cost is a longer quarantine after the next crash.
            Event::Cleared(lanes, cleared) => {
                self.under_way.quarantine = false;
                match cleared {
                    Ok(()) => tracing::info!(
                        event = "quarantine_ended",
                        lanes = lanes.len(),
                        "quarantine ended; crash counts reset to 0"
                    ),
                    Err(error) => _ = self.complain(Step::ClearQuarantine, error),
                }
            }
            Event::Swept(swept) => {
                self.under_way.sweep = false;
                match swept {
                    Ok(0) => {}
                    Ok(count) => {
                        tracing::info!(
                            event = "orphans_released",
                            count,
                            "blocked deliveries are due now, because nothing blocks them any more"
                        );
                        self.pace.next_due = Instant::now();
                    }
                    Err(error) => _ = self.complain(Step::Sweep, error),
                }
            }
            Event::Rechecked { begun, lanes, blocked } => {
                self.under_way.recheck = false;
                let now = Instant::now();
                self.janitors.next_recheck = self.janitors.next_recheck.max(now + (now - begun) * RECHECK_REST);
                match blocked {
                    Ok(blocked) => self.dispatcher.recheck(&lanes, blocked),
                    Err(error) => _ = self.complain(Step::Recheck, error),
                }
            }
            Event::Paused { asked, paused } => {
                self.under_way.pauses = false;
                match paused {
                    Ok(paused) => self.heed(&paused, asked),
                    Err(error) => _ = self.complain(Step::Pauses, error),
                }
            }
            Event::Figures(written) => self.figures_written(written),
            Event::Cleaned(cleaned) => {
                self.under_way.clean = false;
                match cleaned {
                    Ok(true) => self.janitors.next_clean = Instant::now() + CLEAN_PAUSE,
                    Ok(false) => {}
                    Err(error) => _ = self.complain(Step::Clean, error),
                }
            }
        }
    }

    /// A heartbeat was answered.
    fn beaten(&mut self, sent: Instant, beat: Result<Heartbeat>) {
        self.under_way.beat = false;
        match beat {
            Ok(beat) if beat.alive => {
                self.succeeded(Step::Heartbeat, sent);
                self.alive(sent, &beat);
            }
            Ok(_) => {
                tracing::warn!(event = "lease_lost", owner = %self.registration.owner, "lease expired; the relay registers again");
                self.start_anew();
            }
            Err(error) => {
                self.complain(Step::Heartbeat, error);
            }
        }
    }

    /// Failures are tried again without limit, except in a one-shot run, whose caller waits for it. Returns when to try
    /// again.
    fn complain(&mut self, step: Step, error: Error) -> Instant {
        let again = self.trouble.failed(step, &error, Instant::now());
        if self.once && !error.is_temporary() && self.ending.stopping.is_none() {
            self.ending.failure = Some(error);
            self.begin_to_stop();
        }
        again
    }

    /// After an outage everything is read immediately.
    fn succeeded(&mut self, step: Step, begun: Instant) {
        let now = Instant::now();
        if self.trouble.succeeded(step, begun, now) {
            (self.pace.next_poll, self.pace.next_due, self.registration.next_beat) = (now, now, now);
        }
    }

    /// A caller waits for a one-shot run: it ends with the error when the database refuses.
    fn give_up_refused(&mut self, written: &mut Written) {
        if self.once && self.ending.failure.is_none() {
            self.ending.failure = written.refusal.take();
        }
    }
}
