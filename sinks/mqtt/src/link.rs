//! One connection, used by one batch at a time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use crate::packet::{self, Incoming};
use crate::stream::Stream;

/// A connection that was idle for longer is checked with a ping: routers drop idle connections silently.
const REST: Duration = Duration::from_secs(10);
/// How long the answer to the ping may take.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_secs(1);

/// The broker's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// How many messages may be unconfirmed.
    pub(crate) window: usize,
    /// The largest packet, if there is a limit.
    pub(crate) largest: Option<usize>,
    /// After how many idle seconds the broker closes the connection.
    pub(crate) keep_alive: Option<u16>,
}

/// A connection. A batch takes the stream out, and puts it back only when nothing is left open. If the batch is dropped
/// before, the stream is dropped with it, so that no confirmation can be read as another batch's.
pub(crate) struct Link {
    terms: Terms,
    is_gone: AtomicBool,
    place: Mutex<Option<Resting>>,
}

struct Resting {
    stream: Stream,
    since: Instant,
    next_id: u16,
}

/// The use of a connection by one batch.
pub(crate) struct Use<'a> {
    pub(crate) stream: Stream,
    /// The next packet id; never 0.
    pub(crate) next_id: u16,
    pub(crate) terms: Terms,
    place: MutexGuard<'a, Option<Resting>>,
}

impl Link {
    pub(crate) fn new(stream: Stream, terms: Terms) -> Self {
        let since = Instant::now();
        let resting = Resting {
            stream,
            since,
            next_id: 1,
        };
        Self {
            terms,
            is_gone: AtomicBool::new(false),
            place: Mutex::new(Some(resting)),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.is_gone.load(Relaxed)
    }

    /// Takes the connection for one batch, if it still works; otherwise it is not usable from now on.
    pub(crate) async fn take(&self) -> Option<Use<'_>> {
        let used = self.try_take().await;
        if used.is_none() {
            self.is_gone.store(true, Relaxed);
        }
        used
    }

    async fn try_take(&self) -> Option<Use<'_>> {
        let mut place = self.place.lock().await;
        let Resting {
            mut stream,
            since,
            next_id,
        } = place.take()?;
        let given_up = self.terms.keep_alive.filter(|seconds| *seconds > 0);
        let rest = given_up.map_or(REST, |seconds| REST.min(Duration::from_secs(seconds.into()) / 2));
        let lives = if since.elapsed() > rest {
            timeout(SIGN_OF_LIFE, sign_of_life(&mut stream)).await == Ok(true)
        } else {
            // Between two batches a broker sends nothing except DISCONNECT. The runtime must poll the socket once.
            tokio::task::yield_now().await;
            stream.next().now_or_never().is_none()
        };
        lives.then_some(Use {
            stream,
            next_id,
            terms: self.terms,
            place,
        })
    }

    /// Closes it with DISCONNECT.
    pub(crate) async fn end(&self) {
        self.is_gone.store(true, Relaxed);
        if let Some(mut resting) = self.place.lock().await.take() {
            let _ = timeout(FAREWELL, resting.stream.close()).await;
        }
    }
}

async fn sign_of_life(stream: &mut Stream) -> bool {
    packet::put_pingreq(stream.version, &mut stream.out);
    matches!(stream.next().await, Ok(Incoming::PingResp))
}

impl Use<'_> {
    /// Returns the connection: every message was answered.
    pub(crate) fn done(self) {
        let Self {
            stream,
            next_id,
            mut place,
            ..
        } = self;
        let since = Instant::now();
        *place = Some(Resting { stream, since, next_id });
    }
}
