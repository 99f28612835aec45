//! A sink that does as it is told and remembers everything.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::{Outcome, Outgoing, Sink, Uuid};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What a [`ScriptedSink`] does with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It arrives and is confirmed.
    Deliver,
    /// It does not arrive, and the sink says so in these words.
    Refuse(Outcome),
    /// It arrives, and the sink says this anyway, as when a confirmation is lost.
    DeliverBut(Outcome),
    /// The sink panics.
    Panic,
    /// The sink never answers.
    Hang,
}

/// One message in one call of publish.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The message.
    pub outgoing: Arc<Outgoing>,
    /// Which copy of it this was, from 1.
    pub copy: u32,
    /// What was done.
    pub act: Act,
    /// When, by tokio's clock.
    pub at: Instant,
}

impl Publication {
    /// Whether the far side has got it.
    pub fn arrived(&self) -> bool {
        matches!(self.act, Act::Deliver | Act::DeliverBut(_))
    }
}

type Script = dyn Fn(&Outgoing, u32) -> Act + Send + Sync;
type Observer = dyn Fn(&Publication) + Send + Sync;

/// A sink that follows a script, and checks the relay's side of the bargain: no two messages of a key at the same time.
pub struct ScriptedSink {
    script: Box<Script>,
    observer: Box<Observer>,
    latency: Duration,
    notes: Mutex<Notes>,
    published: Notify,
}

#[derive(Default)]
struct Notes {
    publications: Vec<Publication>,
    copies: HashMap<Uuid, u32>,
    in_flight: HashSet<String>,
    overlaps: Vec<String>,
    closed: bool,
}

impl Default for ScriptedSink {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ScriptedSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedSink").finish_non_exhaustive()
    }
}

impl ScriptedSink {
    /// A sink that delivers everything at once.
    pub fn new() -> Self {
        Self {
            script: Box::new(|_, _| Act::Deliver),
            observer: Box::new(|_| {}),
            latency: Duration::ZERO,
            notes: Mutex::default(),
            published: Notify::new(),
        }
    }

    /// What to do with a message, and with which copy of it, counted from 1.
    #[must_use]
    pub fn script(mut self, script: impl Fn(&Outgoing, u32) -> Act + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Is told about every publication, in order.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&Publication) + Send + Sync + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// How long every call of publish takes, before anything arrives.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Everything that was published so far, in order.
    pub fn publications(&self) -> Vec<Publication> {
        self.notes().publications.clone()
    }

    /// What arrived so far, in order, copies included.
    pub fn arrivals(&self) -> Vec<Arc<Outgoing>> {
        let notes = self.notes();
        let arrived = notes.publications.iter().filter(|publication| publication.arrived());
        arrived.map(|publication| publication.outgoing.clone()).collect()
    }

    /// The keys of which the relay handed out a message while another was still in flight.
    pub fn overlaps(&self) -> Vec<String> {
        self.notes().overlaps.clone()
    }

    /// Whether the relay has closed it.
    pub fn is_closed(&self) -> bool {
        self.notes().closed
    }

    /// Waits until what was published fits.
    pub async fn wait_until(&self, fits: impl Fn(&[Publication]) -> bool) {
        loop {
            // Armed before the look, so that a publication in between is not missed.
            let published = self.published.notified();
            if fits(&self.notes().publications) {
                return;
            }
            published.await;
        }
    }

    /// Waits until so many different messages have arrived.
    pub async fn wait_for_arrivals(&self, messages: usize) {
        self.wait_until(|publications| {
            let arrived = publications.iter().filter(|publication| publication.arrived());
            arrived
                .map(|publication| publication.outgoing.id)
                .collect::<HashSet<_>>()
                .len()
                >= messages
        })
        .await;
    }

    fn note(&self, outgoing: &Arc<Outgoing>) -> Publication {
        let mut notes = self.notes();
        let copy = notes.copies.entry(outgoing.id).or_default();
        *copy += 1;
        let act = (self.script)(outgoing, *copy);
        let publication = Publication {
            outgoing: outgoing.clone(),
            copy: *copy,
            act,
            at: Instant::now(),
        };
        notes.publications.push(publication.clone());
        // Still under the lock, so that observers see one order, the same that is remembered here.
        (self.observer)(&publication);
        publication
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Sink for ScriptedSink {
    #[allow(clippy::panic, reason = "a script may ask for it")]
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let _in_flight = InFlight::new(self, batch);
        if self.latency > Duration::ZERO {
            tokio::time::sleep(self.latency).await;
        }
        let mut outcomes = Vec::with_capacity(batch.len());
        for outgoing in batch {
            let publication = self.note(outgoing);
            self.published.notify_waiters();
            let outcome = match publication.act {
                Act::Deliver => Outcome::Delivered,
                Act::Refuse(outcome) | Act::DeliverBut(outcome) => outcome,
                Act::Panic => panic!("the script asked for a panic"),
                Act::Hang => std::future::pending().await,
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    async fn close(&self) {
        self.notes().closed = true;
    }
}

/// The keys of a batch while it is published; dropping a publish that is under way ends it, too.
struct InFlight<'a> {
    sink: &'a ScriptedSink,
    keys: HashSet<String>,
}

impl<'a> InFlight<'a> {
    fn new(sink: &'a ScriptedSink, batch: &[Arc<Outgoing>]) -> Self {
        let mut keys = HashSet::new();
        let mut notes = sink.notes();
        for key in batch.iter().filter_map(|outgoing| outgoing.key.as_ref()) {
            if !keys.insert(key.clone()) || notes.in_flight.contains(key) {
                notes.overlaps.push(key.clone());
            }
        }
        notes.in_flight.extend(keys.iter().cloned());
        drop(notes);
        Self { sink, keys }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut notes = self.sink.notes();
        for key in &self.keys {
            notes.in_flight.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use sendoff::store::{RowRef, Table};

    use super::*;

    fn outgoing(seq: i64, key: &str) -> Arc<Outgoing> {
        let place = RowRef {
            table: Table::Ready,
            lane: 0,
            seq,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        };
        Arc::new(Outgoing {
            id: Uuid::from_u128(seq as u128),
            key: Some(key.to_owned()),
            row_ref: place,
            ..crate::outgoing("t", "")
        })
    }

    fn down(_: &Outgoing, copy: u32) -> Act {
        match copy {
            1 => Act::Refuse(Outcome::Unknown("lost".into())),
            _ => Act::Deliver,
        }
    }

    #[tokio::test]
    async fn the_script_sees_which_copy_it_is() {
        let sink = ScriptedSink::new().script(down);
        let batch = [outgoing(1, "k")];
        assert!(matches!(sink.publish(&batch).await[..], [Outcome::Unknown(_)]));
        assert!(sink.arrivals().is_empty());
        assert_eq!(sink.publish(&batch).await, [Outcome::Delivered]);
        assert_eq!(sink.arrivals().len(), 1);
        sink.wait_for_arrivals(1).await;
    }

    #[tokio::test]
    async fn two_messages_of_a_key_at_the_same_time_are_noticed() {
        let sink = ScriptedSink::new();
        sink.publish(&[outgoing(1, "a"), outgoing(2, "a")]).await;
        assert_eq!(sink.overlaps(), ["a"]);
        let sink = ScriptedSink::new().latency(Duration::from_millis(1));
        let (one, other) = ([outgoing(1, "a")], [outgoing(2, "a")]);
        tokio::join!(sink.publish(&one), sink.publish(&other));
        assert_eq!(sink.overlaps(), ["a"]);
    }
}
