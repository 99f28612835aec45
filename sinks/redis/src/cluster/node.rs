//! One node of a cluster, with a link that is opened when it is needed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sendoff_wire::Refusal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::connect::Connector;
use crate::error;
use crate::link::Link;

/// How long an unreachable node is not tried again: otherwise messages for other nodes would wait for it.
const REST: Duration = Duration::from_millis(250);

pub(super) struct Node {
    connector: Connector,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<Arc<Link>>,
    refused: Option<(Instant, Refusal)>,
}

impl Node {
    pub(super) fn new(connector: Connector, link: Option<Link>) -> Self {
        let state = State {
            link: link.map(Arc::new),
            refused: None,
        };
        Self {
            connector,
            state: Mutex::new(state),
        }
    }

    /// The open link, or a new one, with one attempt.
    pub(super) async fn link(&self) -> Result<Arc<Link>, Refusal> {
        let mut state = self.state.lock().await;
        if let Some(link) = state.link.take_if(|link| link.is_usable()) {
            state.link = Some(Arc::clone(&link));
            return Ok(link);
        }
        state.link = None;
        if let Some((at, refusal)) = &state.refused
            && at.elapsed() < REST
        {
            return Err(refusal.clone());
        }
        let patience = self.connector.patience();
        let connected = match timeout(patience, self.connector.server()).await {
            Ok(connected) => connected,
            Err(_) => {
                let late = io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {patience:?}"));
                Err(error::unreachable(&self.connector.address().to_string(), &late))
            }
        };
        match connected {
            Ok(link) => {
                let link = Arc::new(link);
                state.link = Some(Arc::clone(&link));
                state.refused = None;
                Ok(link)
            }
            Err(refusal) => {
                state.refused = Some((Instant::now(), refusal.clone()));
                Err(refusal)
            }
        }
    }

    /// Whether there is a link that is not known to be broken. A link that is being opened does not count.
    pub(super) fn is_linked(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| state.link.as_ref().is_some_and(|link| link.is_usable()))
    }

    pub(super) fn end(&self) {
        // A link that is being opened is closed by the task that opens it.
        if let Ok(mut state) = self.state.try_lock()
            && let Some(link) = state.link.take()
        {
            link.end();
        }
    }
}
