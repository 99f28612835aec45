//! Acknowledgements, handed to the batches that wait for them.
//!
//! The client can await them one by one; then each message has a channel, a timer and a place in a table of the client's, which
//! is a fifth of all that the relay has to do for it. Here all of a connection come to one subscription, and a batch is woken
//! once, when all that it waits for are there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Message, Subject, SubscribeError, Subscriber};
use futures::StreamExt as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Where the acknowledgements of a connection arrive. Dropping it ends that.
pub(crate) struct Desk {
    /// What they are addressed to, before the number of the batch and that of the message.
    inbox: String,
    batches: Arc<Batches>,
    next: AtomicU64,
    task: JoinHandle<()>,
}

type Batches = Mutex<HashMap<u64, Arc<Arrivals>>>;

/// What has arrived for a batch and was not looked at yet.
#[derive(Default)]
struct Arrivals {
    state: Mutex<State>,
    enough: Notify,
}

#[derive(Default)]
struct State {
    /// By their numbers in the batch.
    acks: Vec<(usize, Message)>,
    /// The batch wants to be woken when so many are there.
    wanted: usize,
}

impl Desk {
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

    /// A place for the acknowledgements of one batch, until it is dropped.
    pub(crate) fn place(&self) -> Place<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let arrivals = Arc::<Arrivals>::default();
        lock(&self.batches).insert(number, Arc::clone(&arrivals));
        Place {
            desk: self,
            number,
            arrivals,
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // The subscription would keep the connection, as its end has to be told to the server.
        self.task.abort();
    }
}

async fn hand_out(mut subscriber: Subscriber, batches: Arc<Batches>) {
    while let Some(message) = subscriber.next().await {
        let Some((batch, index)) = address(&message.subject) else {
            continue;
        };
        // One that came too late is nobody's any more.
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

/// The numbers at the end of the subject.
fn address(subject: &str) -> Option<(u64, usize)> {
    let (rest, index) = subject.rsplit_once('.')?;
    let (_, batch) = rest.rsplit_once('.')?;
    Some((batch.parse().ok()?, index.parse().ok()?))
}

/// The acknowledgements of one batch.
pub(crate) struct Place<'a> {
    desk: &'a Desk,
    number: u64,
    arrivals: Arc<Arrivals>,
}

impl Place<'_> {
    /// What the acknowledgement of a message is addressed to.
    pub(crate) fn address(&self, index: usize) -> Subject {
        format!("{}.{}.{index}", self.desk.inbox, self.number).into()
    }

    /// What has arrived since the last time, with the numbers of its messages.
    pub(crate) fn take(&self) -> Vec<(usize, Message)> {
        std::mem::take(&mut lock(&self.arrivals.state).acks)
    }

    /// Waits until there are so many to take. It may be woken for no reason.
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

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.desk.batches).remove(&self.number);
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
