//! One node of a cluster: a link to it, made when it is needed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sendoff_wire::Refusal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::dial::Dialer;
use crate::error;
use crate::link::Link;

/// After a node could not be reached it is not tried again for so long: the messages of others would wait for it.
const REST: Duration = Duration::from_millis(250);

pub(super) struct Node {
    dialer: Dialer,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<Arc<Link>>,
    refused: Option<(Instant, Refusal)>,
}

impl Node {
    pub(super) fn new(dialer: Dialer, link: Option<Link>) -> Self {
        let state = State {
            link: link.map(Arc::new),
            refused: None,
        };
        Self {
            dialer,
            state: Mutex::new(state),
        }
    }

    /// The link there is, or a new one, by one try.
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
        let patience = self.dialer.patience();
        let dialled = match timeout(patience, self.dialer.server()).await {
            Ok(dialled) => dialled,
            Err(_) => {
                let late = io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {patience:?}"));
                Err(error::unreachable(&self.dialer.address().to_string(), &late))
            }
        };
        match dialled {
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

    /// Whether there is a link that is not known to be broken. One that is being made is none yet.
    pub(super) fn is_linked(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| state.link.as_ref().is_some_and(|link| link.is_usable()))
    }

    pub(super) fn end(&self) {
        // One that is being made ends with whoever makes it.
        if let Ok(mut state) = self.state.try_lock()
            && let Some(link) = state.link.take()
        {
            link.end();
        }
    }
}
