//! Distributes acknowledgements to the batches that wait for them.
//!
//! The client can await them one by one; then each message needs a channel, a timer and an entry in a table of the
//! client, which is a fifth of the relay's work per message. Here all acknowledgements of a connection arrive on one
//! subscription, and a batch is woken once, when all of its acknowledgements are there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Message, Subject, SubscribeError, Subscriber};
use futures::StreamExt as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Receives the acknowledgements of a connection until it is dropped.
pub(crate) struct Dispatcher {
    /// The prefix of their subjects; the number of the batch and the index of the message follow.
    inbox: String,
    batches: Arc<Batches>,
    next: AtomicU64,
    task: JoinHandle<()>,
}

type Batches = Mutex<HashMap<u64, Arc<Arrivals>>>;

/// Acknowledgements of a batch that it has not read yet.
#[derive(Default)]
struct Arrivals {
    state: Mutex<State>,
    enough: Notify,
}

#[derive(Default)]
struct State {
    /// With the index of the message in the batch.
    acks: Vec<(usize, Message)>,
    /// The batch is woken when this many are there.
    wanted: usize,
}

impl Dispatcher {
    pub(crate) async fn open(client: &Client) -> Result<Self, SubscribeError> {
        let inbox = client.new_inbox();
        let subscriber = client.subscribe(format!("{inbox}.*.*")).await?;
        let batches = Arc::new(Batches::default());
        let task = tokio::spawn(hand_out(subscriber, Arc::clone(&batches)));
        Ok(Self {
            inbox,
            batches,
            next: AtomicU64::new(0),
            task,
        })
    }

    /// Collects the acknowledgements of one batch until it is dropped.
    pub(crate) fn place(&self) -> Position<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let arrivals = Arc::<Arrivals>::default();
        lock(&self.batches).insert(number, Arc::clone(&arrivals));
        Position {
            dispatcher: self,
            number,
            arrivals,
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // Otherwise the subscription would keep the connection open, because its end must be sent to the server.
        self.task.abort();
    }
}

async fn hand_out(mut subscriber: Subscriber, batches: Arc<Batches>) {
    while let Some(message) = subscriber.next().await {
        let Some((batch, index)) = address(&message.subject) else {
            continue;
        };
        // The batch of a late acknowledgement is gone.
        let Some(arrivals) = lock(&batches).get(&batch).cloned() else {
            continue;
        };
        let mut state = lock(&arrivals.state);
        state.acks.push((index, message));
        if state.acks.len() == state.wanted {
            arrivals.enough.notify_one();
        }
    }
}

/// The two numbers at the end of the subject.
fn address(subject: &str) -> Option<(u64, usize)> {
    let (rest, index) = subject.rsplit_once('.')?;
    let (_, batch) = rest.rsplit_once('.')?;
    Some((batch.parse().ok()?, index.parse().ok()?))
}

/// The acknowledgements of one batch.
pub(crate) struct Position<'a> {
    dispatcher: &'a Dispatcher,
    number: u64,
    arrivals: Arc<Arrivals>,
}

impl Position<'_> {
    /// The subject for the acknowledgement of a message.
    pub(crate) fn address(&self, index: usize) -> Subject {
        format!("{}.{}.{index}", self.dispatcher.inbox, self.number).into()
    }

    /// The acknowledgements since the last call, with the indexes of their messages.
    pub(crate) fn take(&self) -> Vec<(usize, Message)> {
        std::mem::take(&mut lock(&self.arrivals.state).acks)
    }

    /// Waits until this many acknowledgements are there. It may return early.
    pub(crate) async fn wait_for(&self, count: usize) {
        {
            let mut state = lock(&self.arrivals.state);
            state.wanted = count;
            if state.acks.len() >= count {
                return;
            }
        }
        self.arrivals.enough.notified().await;
    }
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        lock(&self.dispatcher.batches).remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_address_a_message() {
        assert_eq!(address("_INBOX.abc.7.12"), Some((7, 12)));
        for subject in [
            "",
            "7",
            "_INBOX.abc.7",
            "_INBOX.7.x",
            "_INBOX.abc.-7.1",
            "_INBOX.abc.7.",
        ] {
            assert_eq!(address(subject), None, "{subject}");
        }
    }
}
