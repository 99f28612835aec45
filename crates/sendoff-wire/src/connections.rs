//! One connection to a broker, opened when it is needed and shared by all batches.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use sendoff::{Error, ErrorKind, Outcome};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

/// The first pause between two attempts to connect; every further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Opens connections of one kind.
pub trait Connect: Send + Sync {
    /// The type of an open connection.
    type Connection: Send + Sync;

    /// Connects and authenticates once. The caller limits the time by dropping the future.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Refusal>> + Send;

    /// The address of the broker, without secrets, for errors.
    fn address(&self) -> String;

    /// Whether a batch can still be sent on this connection.
    fn is_usable(&self, connection: &Self::Connection) -> bool;
}

/// Why there is no connection, as text for an operator. It never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What failed.
    pub what: String,
    /// Why it failed.
    pub why: String,
    /// What an operator can do about it.
    pub next: String,
}

/// The shared connection of a sink. It is opened once, even if many batches need it at the same time. If that fails,
/// all of them get the same refusal, and none waits longer than `patience`.
pub struct Connections<D: Connect> {
    connect: D,
    patience: Duration,
    /// How many calls of `get` have failed.
    failures: AtomicU64,
    state: Mutex<State<D::Connection>>,
}

struct State<C> {
    connection: Option<Arc<C>>,
    refusal: Option<Refusal>,
}

impl<D: Connect> Connections<D> {
    /// Creates the shared connection, which is not open yet. `patience` limits the time of one call of
    /// [`Connections::get`], including all attempts to connect.
    pub fn new(connect: D, patience: Duration) -> Self {
        Self {
            connect,
            patience,
            failures: AtomicU64::new(0),
            state: Mutex::new(State {
                connection: None,
                refusal: None,
            }),
        }
    }

    /// The connector that opens connections.
    pub fn connector(&self) -> &D {
        &self.connect
    }

    /// The open connection, or a new one. An unreachable broker is tried again, with growing pauses, until `patience`
    /// is used up. Any other refusal is returned immediately.
    ///
    /// # Errors
    /// The last refusal.
    pub async fn get(&self) -> Result<Arc<D::Connection>, Refusal> {
        let failures = self.failures.load(Relaxed);
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            if self.connect.is_usable(connection) {
                return Ok(Arc::clone(connection));
            }
            state.connection = None;
        }
        // Another caller failed to connect while this one waited for the lock: another attempt would double the wait.
        if let Some(refusal) = &state.refusal
            && failures != self.failures.load(Relaxed)
        {
            return Err(refusal.clone());
        }
        match self.try_until(Instant::now() + self.patience).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                state.refusal = None;
                Ok(connection)
            }
            Err(refusal) => {
                self.failures.fetch_add(1, Relaxed);
                state.refusal = Some(refusal.clone());
                Err(refusal)
            }
        }
    }

    /// A separate connection, which no other batch uses. The caller closes it.
    ///
    /// # Errors
    /// The last refusal.
    pub async fn apart(&self) -> Result<D::Connection, Refusal> {
        self.try_until(Instant::now() + self.patience).await
    }

    /// Takes the shared connection out, so that the caller can close it.
    pub async fn close(&self) -> Option<Arc<D::Connection>> {
        self.state.lock().await.connection.take()
    }

    /// Removes a broken connection, so that the next call opens a new one. A newer connection stays.
    pub async fn forget(&self, broken: &Arc<D::Connection>) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, broken)) {
            state.connection = None;
        }
    }

    async fn try_until(&self, deadline: Instant) -> Result<D::Connection, Refusal> {
        let mut pause = FIRST_PAUSE;
        let mut last = None;
        loop {
            let refusal = match timeout_at(deadline, self.connect.connect()).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(refusal)) => refusal,
                Err(_) => return Err(last.unwrap_or_else(|| self.silence())),
            };
            if refusal.kind != ErrorKind::Unreachable || Instant::now() + pause >= deadline {
                return Err(refusal);
            }
            last = Some(refusal);
            sleep(pause).await;
            pause *= 2;
        }
    }

    fn silence(&self) -> Refusal {
        Refusal {
            kind: ErrorKind::Unreachable,
            what: format!("cannot reach the broker at {}", self.connect.address()),
            why: format!("no answer within {:?}", self.patience),
            next: "check that the broker runs, its address, and the firewall".to_owned(),
        }
    }
}

impl Refusal {
    /// The outcome of messages that could not be sent without a connection.
    pub fn outcome(&self) -> Outcome {
        let Self { what, why, next, .. } = self;
        Outcome::SinkDown(format!("{what}: {why} ({next})").into())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind, refusal.what)
            .because(refusal.why)
            .next_step(refusal.next)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind(),
            what: error.what().to_owned(),
            why: error.why().unwrap_or("the settings of the sink are invalid").to_owned(),
            next: error.next().unwrap_or("correct the settings of the sink").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    struct Broker {
        attempts: AtomicU32,
        /// From this attempt on, connecting succeeds.
        answers: u32,
        kind: ErrorKind,
    }

    impl Broker {
        fn connections(answers: u32, kind: ErrorKind) -> Connections<Self> {
            let attempts = AtomicU32::new(0);
            Connections::new(
                Self {
                    attempts,
                    answers,
                    kind,
                },
                Duration::from_secs(3),
            )
        }
    }

    impl Connect for Broker {
        type Connection = u32;

        async fn connect(&self) -> Result<u32, Refusal> {
            let attempt = self.attempts.fetch_add(1, Relaxed) + 1;
            if attempt >= self.answers {
                return Ok(attempt);
            }
            if self.kind == ErrorKind::Busy {
                std::future::pending::<()>().await;
            }
            let text = || "no".to_owned();
            Err(Refusal {
                kind: self.kind,
                what: text(),
                why: text(),
                next: text(),
            })
        }

        fn address(&self) -> String {
            "broker:1".to_owned()
        }

        fn is_usable(&self, connection: &u32) -> bool {
            *connection == self.attempts.load(Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_returns_in_time_is_reached() {
        let connections = Broker::connections(4, ErrorKind::Unreachable);
        assert_eq!(connections.get().await.as_deref(), Ok(&4));
        assert_eq!(connections.get().await.as_deref(), Ok(&4), "one connection is enough");
    }

    #[tokio::test(start_paused = true)]
    async fn all_callers_get_the_refusal_within_patience() {
        for kind in [ErrorKind::Unreachable, ErrorKind::Busy] {
            let connections = Broker::connections(u32::MAX, kind);
            let begin = Instant::now();
            let (a, b, c) = tokio::join!(connections.get(), connections.get(), connections.get());
            assert!(a.is_err() && a == b && b == c);
            assert!(begin.elapsed() <= Duration::from_secs(3), "{:?}", begin.elapsed());
            assert!(begin.elapsed() > Duration::from_secs(1), "{:?}", begin.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_not_tried_again_immediately() {
        let connections = Broker::connections(u32::MAX, ErrorKind::Denied);
        assert_eq!(connections.get().await.unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(connections.connector().attempts.load(Relaxed), 1);
        assert_eq!(connections.get().await.unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(connections.connector().attempts.load(Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_broke_is_replaced() {
        let connections = Broker::connections(1, ErrorKind::Unreachable);
        assert_eq!(connections.get().await.as_deref(), Ok(&1));
        connections.connector().attempts.fetch_add(1, Relaxed);
        assert_eq!(connections.get().await.as_deref(), Ok(&3));
        assert_eq!(connections.close().await.as_deref(), Some(&3));
        assert_eq!(connections.get().await.as_deref(), Ok(&4));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_connection_that_was_given_up_is_forgotten() {
        let connections = Broker::connections(1, ErrorKind::Unreachable);
        let first = connections.get().await.unwrap();
        connections.forget(&first).await;
        let second = connections.get().await.unwrap();
        assert_eq!(*second, 2);
        connections.forget(&first).await;
        assert_eq!(connections.get().await.as_deref(), Ok(&2), "the newer connection stays");
    }

    #[tokio::test(start_paused = true)]
    async fn a_separate_connection_is_not_shared() {
        let connections = Broker::connections(1, ErrorKind::Unreachable);
        assert_eq!(connections.apart().await, Ok(1));
        assert_eq!(connections.get().await.as_deref(), Ok(&2));
    }
}
