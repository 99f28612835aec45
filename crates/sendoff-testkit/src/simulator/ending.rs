//! What has to be true once all faults have ended.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Result;
use sendoff::store::DeadReason;
use tokio::time::{Instant, sleep};

use super::SINKS;
use super::director::Director;
use super::ledger::Note;
use super::process::Process;
use super::verdict::Rule;
use super::world::World;
use crate::memory::{Left, LeftIn};

/// For how long nothing may go forward while there is something to do: a lease, the longest pause of a sink that was down
/// for the longest outage, and some.
const STILL: Duration = Duration::from_secs(40);
/// For how long there may be something to do.
const LONGEST: Duration = Duration::from_secs(180);
/// How often dead letters are brought back: messages that were held up may expire meanwhile.
const ROUNDS: usize = 4;

impl Director {
    /// From the end of all faults to the end of the simulation.
    pub(super) async fn end(&self) -> Result<()> {
        let world = &self.world;
        if !drained(world).await {
            return Ok(());
        }
        world.nothing_is_lost(false);
        // Then everything that was wrong with messages is mended, and the dead letters are brought back.
        world.state().healed = true;
        for _ in 0..ROUNDS {
            world.retry_dead(usize::MAX).await?;
            if !drained(world).await {
                return Ok(());
            }
            if !world.has_letters() {
                break;
            }
        }
        world.nothing_is_lost(true);
        world.nothing_is_in_flight().await;
        self.stop().await;
        Ok(())
    }
}

/// Waits until nothing is left but dead letters and what they hold up.
async fn drained(world: &Arc<World>) -> bool {
    let began = Instant::now();
    loop {
        if world.is_broken() {
            return false;
        }
        let left = world.store.left();
        let to_do: Vec<&Left> = left.iter().filter(|row| has_to_go(row, &left)).collect();
        let (quiet, running) = {
            let state = world.state();
            // One that has no lease is about to get one. Until then others take what it alone has a route for for unroutable.
            let is_leased =
                |process: &Process| process.owners.last().is_some_and(|owner| world.store.is_leased(*owner));
            let is_ready = |process: &Process| process.running && !process.told && is_leased(process);
            let running = state.processes.iter().all(is_ready);
            (state.progress.elapsed(), running && state.with_sink.is_empty())
        };
        if to_do.is_empty() && running {
            return true;
        }
        if quiet > STILL || began.elapsed() > LONGEST {
            let names: Vec<String> = to_do.iter().map(|row| world.describe(row)).collect();
            let since = if quiet > STILL { quiet } else { began.elapsed() };
            let what = format!("after {since:?} there are still {}", names.join("; "));
            world.broken(Rule::StandsStill, what);
            return false;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Whether a row has to be worked on: it is no dead letter, and not held up by one.
fn has_to_go(row: &Left, all: &[Left]) -> bool {
    match row.is_in {
        LeftIn::Dead { .. } => false,
        LeftIn::Ready => true,
        LeftIn::Waiting { .. } => {
            let holds_up = |other: &Left| {
                let blocks = matches!(other.is_in, LeftIn::Dead { blocks: true, .. });
                blocks && other.lane == row.lane && other.key == row.key && other.sink == row.sink
            };
            !(row.is_held() && all.iter().any(holds_up))
        }
    }
}

impl World {
    /// Whether there are dead letters that could be delivered.
    fn has_letters(&self) -> bool {
        let routable = |reason| reason != DeadReason::Unroutable;
        let left = self.store.left();
        left.iter()
            .any(|row| matches!(row.is_in, LeftIn::Dead { reason, .. } if routable(reason)))
    }

    fn describe(&self, row: &Left) -> String {
        format!(
            "{} lane {} {:?} {:?}",
            self.name_of(row.id),
            row.lane,
            row.sink,
            row.is_in
        )
    }

    /// Every message has arrived where it has to, or is a dead letter; at last, only what cannot be routed is one.
    fn nothing_is_lost(&self, at_last: bool) {
        let left = self.store.left();
        let state = self.state();
        let is_left = |note: &Note, sink: usize| {
            let of_delivery = |row: &&Left| *row.sink == *SINKS[sink] || row.sink.is_empty();
            left.iter().filter(of_delivery).any(|row| row.id == note.id)
        };
        let mut lost = Vec::new();
        for (n, note) in state.ledger.notes.iter().enumerate().filter(|(_, note)| note.is_due()) {
            for sink in note.draft.sinks() {
                let delivery = &note.deliveries[*sink];
                let done = delivery.arrived > 0 || delivery.discarded;
                if !done && (at_last || !is_left(note, *sink)) {
                    lost.push(format!("{} at {}", state.ledger.name(n), SINKS[*sink]));
                }
            }
        }
        drop(state);
        if !lost.is_empty() {
            self.broken(Rule::NothingLost, lost.join("; "));
        }
    }

    /// Relays that are watched say that they have nothing in flight.
    async fn nothing_is_in_flight(&self) {
        if !self.plan.observed {
            return;
        }
        // Until health reports have told it: a relay may still wait for the answer to a call.
        let mut found = Vec::new();
        for _ in 0..40 {
            sleep(Duration::from_millis(300)).await;
            found = self.in_flight();
            if found.is_empty() {
                return;
            }
        }
        self.broken(Rule::InFlight, found.join("; "));
    }

    fn in_flight(&self) -> Vec<String> {
        let state = self.state();
        let mut found = Vec::new();
        for (slot, process) in state.processes.iter().enumerate() {
            let Some(relay_health) = &process.relay_health else {
                continue;
            };
            let sinks: usize = relay_health.sinks.iter().map(|sink| sink.in_flight).sum();
            let lanes: usize = relay_health.lanes.iter().map(|(_, in_flight)| in_flight).sum();
            let in_flight = [relay_health.in_flight, relay_health.bytes_in_flight, sinks, lanes];
            if in_flight != [0; 4] {
                found.push(format!("P{slot}: {in_flight:?} messages, bytes, at sinks, in lanes"));
            }
        }
        found
    }
}
