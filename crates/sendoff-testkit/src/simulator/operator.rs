//! What operators do in the middle of it all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Command, Filter, OperateStore, Pausable, RetryOptions};
use sendoff::{Result, Uuid};
use tokio::time::{Instant, sleep};

use super::SINKS;
use super::plan::Operation;
use super::rules::sink_named;
use super::world::World;
use crate::memory::LeftIn;

const WHO: &str = "an operator";

/// A dead letter: its message, its sink, and whether it blocks.
type Letter = (Uuid, Arc<str>, bool);

impl World {
    pub(super) async fn operate(self: &Arc<Self>, operation: Operation) -> Result<()> {
        match operation {
            Operation::RetryDead(limit) => self.retry_dead(limit).await,
            Operation::DiscardDead(limit) => {
                let before = self.letters();
                let (all, mut command) = (Filter::default(), Command::by(WHO));
                self.store.discard_dead(&all, None, limit, &mut command).await?;
                let gone: Vec<Letter> = before.difference(&self.letters()).cloned().collect();
                self.for_letters(&gone, |delivery, _| delivery.discarded = true);
                Ok(())
            }
            Operation::ReleaseKeys => self.release_keys().await,
            Operation::RetryOptions(reset) => self.operate_retry(reset).await,
            Operation::PauseSink(sink, time) => self.pause(Pausable::Sink(SINKS[sink].to_owned()), time).await,
            Operation::PauseTopic(topic, time) => self.pause(Pausable::Topic(topic.to_owned()), time).await,
        }
    }

    /// Makes what waits due; with `reset` also what is scheduled, and as if it had never been tried.
    async fn operate_retry(&self, reset: bool) -> Result<()> {
        let how = RetryOptions {
            reset,
            scheduled: reset,
        };
        let (all, mut command) = (Filter::default(), Command::by(WHO));
        self.store.retry_waiting(&all, how, None, 100, &mut command).await?;
        let mut state = self.state();
        state.progress = Instant::now();
        for note in &mut state.ledger.notes {
            note.retried |= reset;
            if reset {
                note.deliveries.iter_mut().for_each(|delivery| delivery.charges = 0);
            }
        }
        Ok(())
    }

    /// Brings up to so many dead letters back.
    pub(super) async fn retry_dead(&self, limit: usize) -> Result<()> {
        let before = self.letters();
        let (all, mut command) = (Filter::default(), Command::by(WHO));
        self.store.retry_dead(&all, None, limit, &mut command).await?;
        let back: Vec<Letter> = before.difference(&self.letters()).cloned().collect();
        self.for_letters(&back, |delivery, blocked| {
            // Those behind one that held up its key are still held.
            delivery.passed |= !blocked;
            delivery.brought_back = true;
            (delivery.answers, delivery.charges) = (0, 0);
        });
        self.state().progress = Instant::now();
        Ok(())
    }

    async fn release_keys(&self) -> Result<()> {
        let blocking: Vec<Letter> = self.letters().into_iter().filter(|(.., blocks)| *blocks).collect();
        let mut keys = BTreeSet::new();
        for (id, ..) in &blocking {
            let state = self.state();
            let note = state.ledger.find(*id).map(|n| &state.ledger.notes[n]);
            keys.extend(note.and_then(|note| note.draft.key.clone()));
        }
        for key in keys {
            self.store.release_key(&key, None, WHO).await?;
        }
        let mut state = self.state();
        for (id, delivery, _) in blocking {
            // It stays dead.
            if let (Some((_, note)), Some(sink)) = (state.ledger.get(id), sink_named(&delivery)) {
                note.deliveries[sink].passed = true;
            }
        }
        Ok(())
    }

    async fn pause(self: &Arc<Self>, what: Pausable, time: Duration) -> Result<()> {
        self.store.pause(&what, WHO).await?;
        let world = self.clone();
        tokio::spawn(async move {
            sleep(time).await;
            if world.state().faulty {
                drop(world.store.resume(&what, WHO).await);
            }
        });
        Ok(())
    }

    /// Nothing is paused any more.
    pub(super) async fn resume_all(&self) -> Result<()> {
        for pause in self.store.pauses().await? {
            self.store.resume(&pause.what, WHO).await?;
        }
        Ok(())
    }

    fn letters(&self) -> BTreeSet<Letter> {
        let left = self.store.left().into_iter();
        let dead = left.filter_map(|row| match row.is_in {
            LeftIn::Dead { blocks, .. } => Some((row.id, row.sink, blocks)),
            LeftIn::Ready | LeftIn::Waiting { .. } => None,
        });
        dead.collect()
    }

    /// These are no dead letters any more, or not as before: what that means for their deliveries.
    fn for_letters(&self, letters: &[Letter], change: impl Fn(&mut super::ledger::Delivery, bool)) {
        let at = self.ms();
        let mut state = self.state();
        for (id, delivery, blocked) in letters {
            let Some((n, note)) = state.ledger.get(*id) else {
                continue;
            };
            match sink_named(delivery) {
                Some(sink) => {
                    change(&mut note.deliveries[sink], *blocked);
                    note.deliveries[sink].dead = None;
                }
                None => {
                    note.deliveries
                        .iter_mut()
                        .for_each(|delivery| change(delivery, *blocked));
                    note.unrouted = None;
                }
            }
            state.note(at, || format!("an operator acts on #{n} {delivery:?}"));
        }
    }
}
