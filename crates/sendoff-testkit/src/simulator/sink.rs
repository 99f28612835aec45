//! The far side of a sink, and everything that goes wrong on the way there and back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::{Outcome, Outgoing, Reason, Sink};
use tokio::time::{Instant, sleep};

use super::SINKS;
use super::ledger::MessageNo;
use super::message::Temper;
use super::process::Seat;
use super::world::World;

/// A sink as one process calls it.
pub(super) struct FarSide {
    world: Arc<World>,
    seat: Seat,
    sink: usize,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Answers,
    /// Nobody can be reached.
    Down,
    /// It answers for too few messages.
    Short,
    Panics,
    /// There is never an answer; what was sent arrives late, or not at all.
    Silent {
        arrives: bool,
    },
}

impl FarSide {
    pub(super) fn new(world: Arc<World>, seat: Seat, sink: usize) -> Self {
        Self { world, seat, sink }
    }

    fn fate(&self) -> (Duration, Manner) {
        let mut state = self.world.state();
        let down = state.faulty && Instant::now() < state.sinks_down_until[self.sink];
        let (faulty, rng) = (state.faulty, &mut state.rng);
        let mut ms = |range: Range<u64>| Duration::from_millis(rng.u64(range));
        if down {
            let manner = if ms(0..6).is_zero() {
                Manner::Silent { arrives: false }
            } else {
                Manner::Down
            };
            return (ms(0..30), manner);
        }
        if !faulty || rng.u32(0..1000) >= self.world.plan.sink_trouble {
            let slowest = match rng.u8(0..4) {
                0..2 if self.world.plan.slow_sinks && faulty => 1_500,
                0..3 => 3,
                _ => 40,
            };
            return (Duration::from_millis(rng.u64(0..slowest)), Manner::Answers);
        }
        let mut ms = |range: Range<u64>| Duration::from_millis(rng.u64(range));
        match ms(0..10).as_millis() {
            0..4 => (ms(100..1_800), Manner::Answers),
            4 => (ms(2_000..4_500), Manner::Answers),
            5 => (ms(0..40), Manner::Short),
            6 => (ms(0..40), Manner::Panics),
            7 => (ms(0..20), Manner::Down),
            _ => (ms(0..3_500), Manner::Silent { arrives: rng.bool() }),
        }
    }
}

#[async_trait]
impl Sink for FarSide {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let mut call = InFlight::begin(self, batch);
        self.world.gate(self.seat).await;
        if let Some(poison) = self.world.poison_among(&call.messages) {
            let again = Duration::from_millis(300);
            self.world.kill(self.seat.slot, &poison, again);
            std::future::pending::<()>().await;
        }
        let (time, manner) = self.fate();
        if let Manner::Silent { arrives } = manner {
            if arrives {
                let (world, sink, messages) = (self.world.clone(), self.sink, call.messages.clone());
                tokio::spawn(async move {
                    sleep(time).await;
                    messages.iter().for_each(|n| world.arrived(*n, sink));
                });
            }
            self.world
                .log(|| format!("{} gets no answer from {}", self.seat, SINKS[self.sink]));
            std::future::pending::<()>().await;
        }
        if !time.is_zero() {
            sleep(time).await;
        }
        let outcomes: Vec<Outcome> = match manner {
            Manner::Answers => call.messages.iter().map(|n| self.world.act(*n, self.sink)).collect(),
            Manner::Down | Manner::Silent { .. } => vec![Outcome::SinkDown("nobody is there".into()); batch.len()],
            Manner::Short | Manner::Panics => {
                call.messages.iter().for_each(|n| self.world.answered(*n, self.sink));
                Vec::new()
            }
        };
        self.world.gate(self.seat).await;
        self.world.log(|| {
            let words: Vec<&str> = outcomes.iter().map(word).collect();
            format!(
                "{} is answered by {}: {manner:?} {}",
                self.seat,
                SINKS[self.sink],
                words.join(" ")
            )
        });
        if manner == Manner::Panics {
            // Without the message that the usual way prints.
            std::panic::resume_unwind(Box::new("the simulation asked for a panic"));
        }
        call.answered = true;
        outcomes
    }
}

impl World {
    /// What the far side does with a message, and says.
    fn act(&self, n: MessageNo, sink: usize) -> Outcome {
        let trouble = self.plan.sink_trouble;
        let mut state = self.state();
        let note = &mut state.ledger.notes[n];
        let temper = note.draft.temper;
        let tries = note.deliveries[sink].tries;
        let (healed, faulty) = (state.healed, state.faulty);
        let (arrives, outcome) = match temper {
            _ if healed => (true, Outcome::Delivered),
            Temper::Flaky(times) if tries <= times => (false, Outcome::Temporary("not now".into())),
            Temper::Hopeless => (false, Outcome::Temporary("not ever, but who knows".into())),
            Temper::Refused => (false, Outcome::Permanent("no".into())),
            Temper::TooEarly if tries == 1 => {
                let later = Reason::new("later").retry_after(Duration::from_millis(400));
                (false, Outcome::NotYet(later))
            }
            _ if faulty && state.rng.u32(0..1000) < trouble => match state.rng.u8(0..10) {
                0..3 => (false, Outcome::Temporary("not now".into())),
                3 => {
                    let asked = Reason::new("not now").retry_after(Duration::from_millis(900));
                    (false, Outcome::Temporary(asked))
                }
                4 | 5 => (false, Outcome::Unknown("perhaps".into())),
                6 | 7 => (true, Outcome::Unknown("perhaps".into())),
                _ => (false, Outcome::SinkDown("going down".into())),
            },
            _ => (true, Outcome::Delivered),
        };
        let delivery = &mut state.ledger.notes[n].deliveries[sink];
        match &outcome {
            Outcome::Delivered => delivery.confirmed += 1,
            Outcome::Temporary(_) | Outcome::Permanent(_) | Outcome::Unknown(_) => delivery.answers += 1,
            Outcome::NotYet(_) => delivery.passed = true,
            Outcome::SinkDown(_) => {}
        }
        drop(state);
        if arrives {
            self.arrived(n, sink);
        }
        outcome
    }

    /// No answer, which may be charged.
    fn answered(&self, n: MessageNo, sink: usize) {
        let mut state = self.state();
        let delivery = &mut state.ledger.notes[n].deliveries[sink];
        delivery.answers += 1;
        delivery.panicked = Some(Instant::now());
    }

    fn poison_among(&self, messages: &[MessageNo]) -> Option<String> {
        let mut state = self.state();
        if state.healed {
            return None;
        }
        let is_poison = |n: &&MessageNo| state.ledger.notes[**n].draft.temper == Temper::Poison;
        let poison = *messages.iter().find(is_poison)?;
        state.ledger.notes[poison].kills += 1;
        Some(state.ledger.name(poison))
    }
}

/// A call that is under way; dropping it ends it, too.
struct InFlight<'a> {
    of: &'a FarSide,
    call: u64,
    messages: Vec<MessageNo>,
    answered: bool,
}

impl<'a> InFlight<'a> {
    fn begin(of: &'a FarSide, batch: &[Arc<Outgoing>]) -> Self {
        let (call, messages) = of.world.handed_over(of.seat, of.sink, batch);
        Self {
            of,
            call,
            messages,
            answered: false,
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.of.world.state();
        state.with_sink.remove(&self.call);
        if !self.answered {
            // It took too long, or the lease was over: the one is charged and the other is not.
            for n in &self.messages {
                state.ledger.notes[*n].deliveries[self.of.sink].answers += 1;
            }
        }
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Temporary(_) => "temporary",
        Outcome::Permanent(_) => "permanent",
        Outcome::Unknown(_) => "unknown",
        Outcome::SinkDown(_) => "down",
        Outcome::NotYet(_) => "not-yet",
    }
}
