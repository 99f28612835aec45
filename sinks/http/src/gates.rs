//! Limits the requests that are under way at the same time, per host and in total, and keeps what is known about a
//! host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Version;
use sendoff::Outcome;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// With more hosts than this, unused ones are dropped.
const MANY_HOSTS: usize = 1000;

/// The limits of all hosts.
#[derive(Debug)]
pub(crate) struct Gates {
    per_host: usize,
    hosts: Mutex<HashMap<String, Arc<Gate>>>,
    all: Arc<Semaphore>,
}

#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    /// The single permit while the host gives no answers. A request sent then may still arrive, so it is charged as an
    /// attempt: to one message at a time, and not to all that wait.
    probe: Arc<Semaphore>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The last outcome that all requests to this host would have, and when it came.
    setback: Option<(Instant, Outcome)>,
    /// When the host itself last answered.
    answered: Option<Instant>,
    /// When the host last accepted a message.
    accepted: Option<Instant>,
    /// Whether the last answer used HTTP/1.1, which has one request at a time per connection.
    speaks_http1: bool,
    is_silent: bool,
}

/// A permit for one request. Dropping it frees the permit.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    _probe: Option<OwnedSemaphorePermit>,
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// Why a request got no permit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// No permit was free in time.
    Crowded,
    /// Another request to the host failed meanwhile, and this one would fail the same way.
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

    /// Waits for a permit, first for this host, then in total: a slow host cannot take more than its own share of the
    /// total.
    pub(crate) async fn pass(&self, host: &str, limit: Duration) -> Result<Pass, Stopped> {
        let gate = self.gate(host);
        let since = Instant::now();
        let passing = async {
            let host = Arc::clone(&gate.places).acquire_owned().await.ok()?;
            let is_silent = gate.known().is_silent;
            let probe = match is_silent {
                true => Some(Arc::clone(&gate.probe).acquire_owned().await.ok()?),
                false => None,
            };
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some((probe, host, all))
        };
        let (probe, host, all) = timeout(limit, passing).await.ok().flatten().ok_or(Stopped::Crowded)?;
        // Otherwise an unreachable host would be tried once for each waiting message, with one timeout each.
        let setback = gate.known().setback.clone();
        match setback {
            Some((at, outcome)) if at > since => Err(Stopped::Setback(outcome)),
            Some(_) | None => Ok(Pass {
                gate,
                _probe: probe,
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
            probe: Arc::new(Semaphore::new(1)),
            known: Mutex::default(),
        });
        hosts.insert(host.to_owned(), Arc::clone(&gate));
        gate
    }
}

impl Gate {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Passes this outcome to the requests that wait for the same host.
    pub(crate) fn note_setback(&self, outcome: &Outcome) {
        self.gate.known().setback = Some((Instant::now(), outcome.clone()));
    }

    /// Notes that the host itself answered.
    pub(crate) fn note_answer(&self) {
        let mut known = self.gate.known();
        known.answered = Some(Instant::now());
        known.is_silent = false;
    }

    /// Notes the HTTP version of an answer.
    pub(crate) fn note_version(&self, version: Version) {
        self.gate.known().speaks_http1 = version < Version::HTTP_2;
    }

    /// Whether, as far as is known, no other request was on the same connection.
    pub(crate) fn speaks_http1(&self) -> bool {
        self.gate.known().speaks_http1
    }

    /// Notes that the host accepted a message.
    pub(crate) fn note_accepted(&self) {
        self.gate.known().accepted = Some(Instant::now());
    }

    /// Whether the host accepted a message within this time.
    pub(crate) fn accepted_within(&self, time: Duration) -> bool {
        let accepted = self.gate.known().accepted;
        accepted.is_some_and(|accepted| accepted.elapsed() < time)
    }

    /// Notes that the host gave no answer. If it answered no other request since `sent` either, it gets only one
    /// request at a time from now on. Returns whether this is so.
    pub(crate) fn note_silence(&self, sent: Instant) -> bool {
        let mut known = self.gate.known();
        known.is_silent = known.answered.is_none_or(|answered| answered < sent);
        known.is_silent
    }

    /// Whether the host itself answered within this time.
    pub(crate) fn answered_within(&self, time: Duration) -> bool {
        let answered = self.gate.known().answered;
        answered.is_some_and(|answered| answered.elapsed() < time)
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

    #[tokio::test(start_paused = true)]
    async fn a_host_that_gives_no_answers_gets_one_request_at_a_time_until_it_does() {
        let gates = Gates::new(4, 10);
        let sent = Instant::now();
        let first = gates.pass("a", SOON).await.unwrap();
        let second = gates.pass("a", SOON).await.unwrap();
        assert!(first.note_silence(sent));
        drop((first, second));
        let probe = gates.pass("a", SOON).await.unwrap();
        assert_eq!(gates.pass("a", SOON).await.unwrap_err(), Stopped::Crowded);
        assert!(gates.pass("b", SOON).await.is_ok(), "another host is not affected");
        probe.note_answer();
        assert!(!probe.note_silence(sent), "it has answered since then");
        let _more = [
            gates.pass("a", SOON).await.unwrap(),
            gates.pass("a", SOON).await.unwrap(),
        ];
        assert!(probe.answered_within(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!probe.answered_within(Duration::from_secs(1)));
    }
}
