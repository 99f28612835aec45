//! The wire between a process and the store, and everything that goes wrong on it.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use tokio::time::{Instant, sleep, sleep_until};

use super::process::Seat;
use super::world::World;
use crate::MemoryStore;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CallFate {
    /// How long it takes to the store,
    pub(super) there: Duration,
    /// and back.
    pub(super) back: Duration,
    /// It never gets there.
    pub(super) refused: bool,
    /// Its answer never comes back: there is an error instead.
    pub(super) lost: bool,
    /// Nothing ever comes back. Such a process is killed in the end.
    pub(super) silent: bool,
}

/// A request that takes longer than this is on its way even if the process that sent it is not there any more.
const ON_ITS_WAY: Duration = Duration::from_millis(40);

impl World {
    pub(super) fn call_fate(&self, seat: Seat) -> CallFate {
        let now = Instant::now();
        let trouble = self.plan.store_trouble;
        let mut state = self.state();
        let down = state.store_down_until;
        let (faulty, rng) = (state.faulty, &mut state.rng);
        let mut ms = |range: Range<u64>| Duration::from_millis(rng.u64(range));
        let mut fate = CallFate::default();
        if !faulty {
            return fate;
        }
        if now < down {
            fate.refused = true;
            fate.there = match ms(0..3).as_millis() {
                0 => down - now + ms(0..300),
                _ => ms(1..60),
            };
            return fate;
        }
        if rng.u32(0..1000) >= trouble {
            let slow = rng.u8(0..4) == 0;
            fate.there = Duration::from_millis(if slow { rng.u64(1..4) } else { 0 });
            return fate;
        }
        let mut ms = |range: Range<u64>| Duration::from_millis(rng.u64(range));
        match ms(0..10).as_millis() {
            0..2 => (fate.refused, fate.there) = (true, ms(0..40)),
            2..5 => (fate.lost, fate.back) = (true, ms(0..150)),
            5 | 6 => fate.there = ms(20..1500),
            7 => fate.back = ms(20..1500),
            8 => (fate.there, fate.lost) = (ms(1_500..7_000), rng.bool()),
            _ => (fate.back, fate.lost) = (ms(1_500..7_000), rng.bool()),
        }
        let silent = fate.back > Duration::from_secs(6) && rng.u8(0..3) == 0;
        if silent {
            fate.silent = true;
            state.processes[seat.slot].stuck = true;
        }
        fate
    }

    /// Carries a call to the store and its answer back, if all goes well. What is on its way arrives, whatever becomes of
    /// the process that sent it.
    pub(super) async fn carry<T, F>(
        self: &Arc<Self>,
        seat: Seat,
        verb: &'static str,
        work: impl FnOnce(MemoryStore) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.gate(seat).await;
        let fate = self.call_fate(seat);
        if fate != CallFate::default() {
            self.log(|| format!("{seat} {verb} {fate:?}"));
        }
        let store = self.store.clone();
        let answer = if fate.refused {
            rest(fate.there).await;
            Err(unreachable_store(verb))
        } else if fate.there > ON_ITS_WAY {
            let late = tokio::spawn(async move {
                sleep(fate.there).await;
                work(store).await
            });
            late.await.unwrap_or_else(|_| Err(unreachable_store(verb)))
        } else {
            rest(fate.there).await;
            work(store).await
        };
        rest(fate.back).await;
        if fate.silent {
            std::future::pending::<()>().await;
        }
        self.gate(seat).await;
        if fate.lost {
            return Err(unreachable_store(verb));
        }
        answer
    }

    /// Waits while the process stands still.
    pub(super) async fn gate(&self, seat: Seat) {
        loop {
            let until = self.state().processes[seat.slot].frozen_until;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

async fn rest(for_: Duration) {
    if !for_.is_zero() {
        sleep(for_).await;
    }
}

pub(super) fn unreachable_store(verb: &str) -> Error {
    Error::new(ErrorKind::Unreachable, "cannot reach the store")
        .because(format!("the simulation broke {verb}"))
        .next_step("try again")
}
