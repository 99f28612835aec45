//! One connection to a broker, made when it is needed and shared by all batches.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use sendoff::{Error, ErrorKind, Outcome};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

/// How long the first pause between two tries is; every further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Makes connections of one kind.
pub trait Dial: Send + Sync {
    /// What a call results in.
    type Connection: Send + Sync;

    /// Connects and authenticates, once. The caller sets the limit of time, by dropping the future.
    fn dial(&self) -> impl Future<Output = Result<Self::Connection, Refusal>> + Send;

    /// Whether a batch may still be sent through it.
    fn is_usable(&self, connection: &Self::Connection) -> bool;
}

/// Why there is no connection, in words for an operator. It never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of thing stands in the way.
    pub kind: ErrorKind,
    /// What failed.
    pub what: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub next: String,
}

/// The connection of a sink. However many batches want one at the same time, it is made once; if that fails, all of them
/// learn it, and none waits longer than the patience of the line.
pub struct Line<D: Dial> {
    dial: D,
    patience: Duration,
    /// How often there was no connection to be had.
    failures: AtomicU64,
    state: Mutex<State<D::Connection>>,
}

struct State<C> {
    connection: Option<Arc<C>>,
    refusal: Option<Refusal>,
}

impl<D: Dial> Line<D> {
    /// A line that is not connected yet. `patience` is how long one call for a connection may take, all tries together.
    pub fn new(dial: D, patience: Duration) -> Self {
        Self {
            dial,
            patience,
            failures: AtomicU64::new(0),
            state: Mutex::new(State {
                connection: None,
                refusal: None,
            }),
        }
    }

    /// What makes the connections.
    pub fn dialer(&self) -> &D {
        &self.dial
    }

    /// The connection there is, or a new one. What cannot be reached is tried again, with growing pauses, while the
    /// patience lasts; what refuses us is not.
    ///
    /// # Errors
    /// The last refusal.
    pub async fn get(&self) -> Result<Arc<D::Connection>, Refusal> {
        let failures = self.failures.load(Relaxed);
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            if self.dial.is_usable(connection) {
                return Ok(Arc::clone(connection));
            }
            state.connection = None;
        }
        // Somebody else tried while this caller waited for the lock: trying again would double the wait.
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

    /// A connection of the caller's own, which no other batch uses. The caller ends it.
    ///
    /// # Errors
    /// The last refusal.
    pub async fn apart(&self) -> Result<D::Connection, Refusal> {
        self.try_until(Instant::now() + self.patience).await
    }

    /// Forgets the connection, and gives it to the caller to be ended.
    pub async fn hang_up(&self) -> Option<Arc<D::Connection>> {
        self.state.lock().await.connection.take()
    }

    /// Forgets this connection, which the caller has given up. A newer one stays.
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
            let refusal = match timeout_at(deadline, self.dial.dial()).await {
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
            what: "the broker cannot be reached".to_owned(),
            why: format!("it did not answer within {:?}", self.patience),
            next: "check its address, that it runs, and the firewall between".to_owned(),
        }
    }
}

impl Refusal {
    /// What became of messages that could not be sent for it.
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
            why: error.why().unwrap_or("the settings cannot be used").to_owned(),
            next: error.next().unwrap_or("see the settings of the sink").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    struct Phone {
        calls: AtomicU32,
        /// From this call on somebody answers.
        answers: u32,
        kind: ErrorKind,
    }

    impl Phone {
        fn line(answers: u32, kind: ErrorKind) -> Line<Self> {
            let calls = AtomicU32::new(0);
            Line::new(Self { calls, answers, kind }, Duration::from_secs(3))
        }
    }

    impl Dial for Phone {
        type Connection = u32;

        async fn dial(&self) -> Result<u32, Refusal> {
            let call = self.calls.fetch_add(1, Relaxed) + 1;
            if call >= self.answers {
                return Ok(call);
            }
            if self.kind == ErrorKind::Busy {
                std::future::pending::<()>().await;
            }
            let words = || "no".to_owned();
            Err(Refusal {
                kind: self.kind,
                what: words(),
                why: words(),
                next: words(),
            })
        }

        fn is_usable(&self, connection: &u32) -> bool {
            *connection == self.calls.load(Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_comes_back_in_time_is_reached() {
        let line = Phone::line(4, ErrorKind::Unreachable);
        assert_eq!(line.get().await.as_deref(), Ok(&4));
        assert_eq!(line.get().await.as_deref(), Ok(&4), "one connection is enough");
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_learn_of_a_dead_broker_in_one_patience() {
        for kind in [ErrorKind::Unreachable, ErrorKind::Busy] {
            let line = Phone::line(u32::MAX, kind);
            let begin = Instant::now();
            let (a, b, c) = tokio::join!(line.get(), line.get(), line.get());
            assert!(a.is_err() && a == b && b == c);
            assert!(begin.elapsed() <= Duration::from_secs(3), "{:?}", begin.elapsed());
            assert!(begin.elapsed() > Duration::from_secs(1), "{:?}", begin.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_refuses_us_is_not_asked_again_at_once() {
        let line = Phone::line(u32::MAX, ErrorKind::Denied);
        assert_eq!(line.get().await.unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(line.dialer().calls.load(Relaxed), 1);
        assert_eq!(line.get().await.unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(line.dialer().calls.load(Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_broke_is_replaced() {
        let line = Phone::line(1, ErrorKind::Unreachable);
        assert_eq!(line.get().await.as_deref(), Ok(&1));
        line.dialer().calls.fetch_add(1, Relaxed);
        assert_eq!(line.get().await.as_deref(), Ok(&3));
        assert_eq!(line.hang_up().await.as_deref(), Some(&3));
        assert_eq!(line.get().await.as_deref(), Ok(&4));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_connection_that_was_given_up_is_forgotten() {
        let line = Phone::line(1, ErrorKind::Unreachable);
        let first = line.get().await.unwrap();
        line.forget(&first).await;
        let second = line.get().await.unwrap();
        assert_eq!(*second, 2);
        line.forget(&first).await;
        assert_eq!(line.get().await.as_deref(), Ok(&2), "the newer one stays");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_apart_is_nobody_elses() {
        let line = Phone::line(1, ErrorKind::Unreachable);
        assert_eq!(line.apart().await, Ok(1));
        assert_eq!(line.get().await.as_deref(), Ok(&2));
    }
}
