//! How many requests are under way at once, to a host and to all; and what befell a host while others waited for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sendoff::Outcome;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// With more hosts than this, those that nobody uses are forgotten.
const MANY_HOSTS: usize = 1000;

/// The gates that requests go through.
#[derive(Debug)]
pub(crate) struct Gates {
    per_host: usize,
    hosts: Mutex<HashMap<String, Arc<Gate>>>,
    all: Arc<Semaphore>,
}

#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    /// When a request to this host last showed that no other would do better, and what came of it.
    setback: Mutex<Option<(Instant, Outcome)>>,
}

/// A place among the requests that are under way. Dropped, it goes to the next.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// Why a request was not let through.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// No place came free in time.
    Crowded,
    /// While it waited another one failed as it would.
    Setback(Outcome),
}

impl Gates {
    pub(crate) fn new(per_host: usize, all: usize) -> Self {
        Self {
            per_host: per_host.min(Semaphore::MAX_PERMITS),
            hosts: Mutex::default(),
            all: Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Waits for a place, first among the requests to this host: a host that is slow takes no more of the others' places
    /// than it may have itself.
    pub(crate) async fn pass(&self, host: &str, limit: Duration) -> Result<Pass, Stopped> {
        let gate = self.gate(host);
        let since = Instant::now();
        let passing = async {
            let host = Arc::clone(&gate.places).acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some((host, all))
        };
        let (host, all) = timeout(limit, passing).await.ok().flatten().ok_or(Stopped::Crowded)?;
        // A host that cannot be reached would otherwise be tried once for each that waits, a timeout each.
        let setback = gate.setback.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match setback {
            Some((at, outcome)) if at > since => Err(Stopped::Setback(outcome)),
            Some(_) | None => Ok(Pass {
                gate,
                _host: host,
                _all: all,
            }),
        }
    }

    fn gate(&self, host: &str) -> Arc<Gate> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = hosts.get(host) {
            return Arc::clone(gate);
        }
        if hosts.len() >= MANY_HOSTS {
            hosts.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        let gate = Arc::new(Gate {
            places: Arc::new(Semaphore::new(self.per_host)),
            setback: Mutex::default(),
        });
        hosts.insert(host.to_owned(), Arc::clone(&gate));
        gate
    }
}

impl Pass {
    /// Tells those who wait for the same host that they would fare no better.
    pub(crate) fn note_setback(&self, outcome: &Outcome) {
        let mut setback = self.gate.setback.lock().unwrap_or_else(PoisonError::into_inner);
        *setback = Some((Instant::now(), outcome.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test(start_paused = true)]
    async fn a_host_has_its_share_and_leaves_the_rest_to_others() {
        let gates = Gates::new(2, 3);
        let one = gates.pass("a", SOON).await.unwrap();
        let _two = gates.pass("a", SOON).await.unwrap();
        assert_eq!(
            gates.pass("a", SOON).await.unwrap_err(),
            Stopped::Crowded,
            "a third to one host"
        );
        let _three = gates.pass("b", SOON).await.unwrap();
        assert_eq!(
            gates.pass("c", SOON).await.unwrap_err(),
            Stopped::Crowded,
            "a fourth in all"
        );
        drop(one);
        assert!(gates.pass("c", SOON).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_that_nobody_uses_are_forgotten() {
        let gates = Gates::new(1, 10);
        let kept = gates.pass("kept", SOON).await.unwrap();
        for host in 0..2 * MANY_HOSTS {
            drop(gates.pass(&host.to_string(), SOON).await);
        }
        assert!(gates.hosts.lock().unwrap().len() <= MANY_HOSTS);
        assert!(gates.pass("kept", SOON).await.is_err(), "a host in use keeps its gate");
        drop(kept);
    }

    #[tokio::test(start_paused = true)]
    async fn a_setback_is_shared_with_those_who_waited_and_not_with_those_who_come_later() {
        let gates = Gates::new(1, 10);
        let down = Outcome::SinkDown("down".into());
        let first = gates.pass("a", SOON).await.unwrap();
        let fails = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            first.note_setback(&down);
            drop(first);
        };
        let (waited, ()) = tokio::join!(gates.pass("a", SOON), fails);
        assert_eq!(waited.unwrap_err(), Stopped::Setback(down));
        assert!(gates.pass("a", SOON).await.is_ok());
        assert!(gates.pass("b", SOON).await.is_ok());
    }
}
