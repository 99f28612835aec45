//! Lets the plan happen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sendoff::store::{EmitTransaction, OwnerId, RelayStore};
use sendoff::{Message, Result, Uuid};
use tokio::time::{Instant, sleep, sleep_until};

use super::ledger::{Fate, Ledger, Note};
use super::message::Draft;
use super::plan::Step;
use super::verdict::Rule;
use super::world::World;
use crate::memory::{MemoryTransaction, Snapshot};

/// Carries the steps of a plan out, one after the other.
pub(super) struct Director {
    pub(super) world: Arc<World>,
    open: BTreeMap<usize, Open>,
    standby: Option<(Snapshot, Ledger)>,
}

/// A transaction that is open.
struct Open {
    /// When it began, in steps of the history and by the database's clock.
    began: (u64, SystemTime),
    transaction: Box<MemoryTransaction>,
}

impl Director {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self {
            world,
            open: BTreeMap::new(),
            standby: None,
        }
    }

    /// Everything up to the end of all faults, and that end.
    pub(super) async fn play(&mut self) -> Result<()> {
        for slot in 0..self.world.plan.relays {
            self.world.start(slot);
        }
        let steps = self.world.plan.steps.clone();
        for (at, step) in steps {
            sleep_until(self.world.began + at).await;
            if self.world.is_broken() {
                return Ok(());
            }
            self.carry_out(step).await?;
        }
        sleep_until(self.world.began + self.world.plan.ends).await;
        self.end_faults().await
    }

    async fn carry_out(&mut self, step: Step) -> Result<()> {
        let world = self.world.clone();
        world.log(|| format!("-- {step:?}"));
        match step {
            Step::Begin(tx) => {
                let began = (world.state().ledger.step(), world.store.now());
                let transaction = Box::new(world.store.transaction().await?);
                self.open.insert(tx, Open { began, transaction });
            }
            Step::Emit(tx, draft) => self.emit(tx, draft).await?,
            Step::Commit(tx) => {
                if let Some(open) = self.open.remove(&tx) {
                    open.transaction.commit().await?;
                    world.state().ledger.ended(open.began.0, Fate::Committed);
                }
            }
            Step::RollBack(tx) => self.roll_back(tx).await?,
            Step::StoreDown(time) => world.state().store_down_until = Instant::now() + time,
            Step::SinkDown(sink, time) => world.state().sinks_down_until[sink] = Instant::now() + time,
            Step::Freeze(slot, time) => world.freeze(slot, time),
            Step::Kill(slot, again) => world.kill(slot, "as planned", again),
            Step::Stop(slot, again) => world.stop_and_start(slot, again),
            Step::Lag => self.standby = Some((world.store.snapshot(), world.state().ledger.clone())),
            Step::FailOver => self.fail_over().await?,
            Step::SetClock(ms) => {
                let by = Duration::from_millis(ms.unsigned_abs());
                if ms > 0 {
                    world.store.shift_clock(by);
                } else {
                    world.store.shift_clock_back(by);
                }
                world.state().disturbed = Some(Instant::now());
            }
            Step::Operate(operation) => world.operate(operation).await?,
        }
        Ok(())
    }

    async fn emit(&mut self, tx: usize, draft: Draft) -> Result<()> {
        let Some(open) = self.open.get_mut(&tx) else {
            return Ok(());
        };
        let now = self.world.store.now();
        let id = Uuid::from_u128(self.world.state().rng.u128(..));
        let mut message = Message::bytes(&draft.topic, "text/plain", "x")
            .with_id(id)
            .priority(draft.priority);
        if let Some(key) = &draft.key {
            message = message.key(key);
        }
        if let Some(delay) = draft.delay {
            message = message.delay(delay);
        }
        if let Some(lives) = draft.lives {
            message = message.expires_at(now + lives);
        }
        if let Some(most) = draft.max_attempts {
            message = message.max_attempts(most);
        }
        let note = Note {
            id,
            fate: Fate::Open,
            began: open.began.0,
            ended: u64::MAX,
            available: draft.delay.map(|delay| open.began.1 + delay),
            expires: draft.lives.map(|lives| now + lives),
            kills: 0,
            retried: false,
            deliveries: Default::default(),
            unrouted: None,
            draft,
        };
        self.world.state().ledger.emitted(note);
        open.transaction.emit(&[message]).await?;
        Ok(())
    }

    async fn roll_back(&mut self, tx: usize) -> Result<()> {
        if let Some(open) = self.open.remove(&tx) {
            open.transaction.rollback().await?;
            self.world.state().ledger.ended(open.began.0, Fate::Never);
        }
        Ok(())
    }

    async fn roll_back_all(&mut self) -> Result<()> {
        let open: Vec<usize> = self.open.keys().copied().collect();
        for tx in open {
            self.roll_back(tx).await?;
        }
        Ok(())
    }

    /// The standby takes over. No transaction that is open survives that.
    async fn fail_over(&mut self) -> Result<()> {
        let Some((snapshot, then)) = self.standby.take() else {
            return Ok(());
        };
        self.roll_back_all().await?;
        self.world.store.fail_over(snapshot);
        let mut state = self.world.state();
        state.ledger.fail_over(&then);
        state.disturbed = Some(Instant::now());
        state.failed_over = true;
        Ok(())
    }

    /// Nothing goes wrong from now on, but for what is wrong with messages.
    async fn end_faults(&mut self) -> Result<()> {
        self.world.log(|| "-- faults end".to_owned());
        self.roll_back_all().await?;
        let stuck = self.world.end_faults();
        if self.world.plan.routes_differ && !self.world.plan.routes_stay {
            for slot in 1..self.world.plan.relays {
                self.world.stop_and_start(slot, Duration::from_millis(200));
            }
        }
        for slot in stuck {
            self.world
                .kill(slot, "a call of it was never answered", Duration::from_millis(100));
        }
        self.world.resume_all().await
    }

    /// All relays are told to stop, and do.
    pub(super) async fn stop(&self) {
        let world = &self.world;
        for slot in 0..world.plan.relays {
            world.stop(slot);
        }
        for _ in 0..200 {
            if world.state().processes.iter().all(|process| !process.running) {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        if world.state().processes.iter().any(|process| process.running) {
            world.broken(Rule::StopsCleanly, "a relay was told to stop ten seconds ago");
        }
        // Those that were killed are struck off by others, as long as there are others.
        let state = world.state();
        let last: Vec<OwnerId> = state
            .processes
            .iter()
            .filter_map(|process| process.owners.last().copied())
            .collect();
        drop(state);
        let mut holders = (0..world.store.lanes()).filter_map(|lane| world.store.owner_of(lane));
        let registered = world.store.registered();
        if holders.any(|owner| last.contains(&owner)) || registered.iter().any(|owner| last.contains(owner)) {
            world.broken(
                Rule::StopsCleanly,
                "a relay has stopped and is still registered, or has lanes",
            );
        }
    }
}

impl World {
    /// Nothing goes wrong from now on. Tells which processes wait for an answer that never comes.
    fn end_faults(&self) -> Vec<usize> {
        let mut state = self.state();
        state.faulty = false;
        state.progress = Instant::now();
        (0..state.processes.len())
            .filter(|slot| state.processes[*slot].stuck)
            .collect()
    }
}
