//! One connection, and the events of the server about it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, Event, ServerError};
use sendoff::Outcome;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::acks::Dispatcher;
use crate::error;

/// How long closing a connection may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How many denied subjects are remembered.
const MOST_DENIED: usize = 10_000;

/// A connection. After a break it is dropped, and a new one is opened. The client could reconnect and send its queue,
/// but then it would be unknown which messages were sent.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) news: watch::Receiver<News>,
    /// Set when the server stopped answering, which the client notices only after minutes.
    pub(crate) silent: std::sync::atomic::AtomicBool,
}

/// Events of a connection.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// It broke, or was closed.
    pub(crate) lost: bool,
    /// The server is stopping: no new batches.
    leaving: bool,
    /// The last error of the server.
    pub(crate) said: Option<String>,
    denied: BTreeSet<String>,
    /// The subject for acknowledgements, if the subscription was denied.
    deaf: Option<String>,
}

impl Link {
    /// Whether a new batch may use it.
    pub(crate) fn is_usable(&self) -> bool {
        let news = self.news.borrow();
        !news.lost && !news.leaving && !self.silent.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Whether it broke, or the server closed it.
    pub(crate) fn is_lost(&self) -> bool {
        self.news.borrow().lost
    }

    /// Why no acknowledgements can arrive on this connection.
    pub(crate) fn deaf(&self) -> Option<String> {
        self.news.borrow().deaf.as_deref().map(error::deaf)
    }

    /// Closes it, and waits for its tasks.
    pub(crate) async fn end(&self) {
        let _ = timeout(FAREWELL, async {
            let _ = self.client.drain().await;
            let mut news = self.news.clone();
            // The client's last task owns the sending half.
            while news.changed().await.is_ok() {}
        })
        .await;
    }
}

impl News {
    /// The outcome of a message to a subject that the server refused.
    pub(crate) fn denied(&self, subject: &str) -> Option<Outcome> {
        self.denied.contains(subject).then(|| error::denied(subject))
    }

    /// The outcome of a message that waits for its acknowledgement, if an event decides it.
    pub(crate) fn verdict(&self, subject: &str) -> Option<Outcome> {
        if let Some(denied) = self.denied(subject) {
            return Some(denied);
        }
        if let Some(inbox) = &self.deaf {
            return Some(Outcome::Unknown(error::deaf(inbox).into()));
        }
        self.lost.then(|| error::lost(self.said.as_deref()))
    }

    pub(crate) fn learn(&mut self, event: &Event) {
        match event {
            Event::Connected => {}
            // The client drains by itself.
            Event::Draining => self.leaving = true,
            Event::Disconnected | Event::Closed => self.lost = true,
            Event::LameDuckMode => self.leaving = true,
            Event::SlowConsumer(_) => {}
            Event::ServerError(ServerError::AuthorizationViolation) => {
                self.said = Some("authorization violation".to_owned());
            }
            Event::ServerError(ServerError::SlowConsumer(_)) => {}
            Event::ServerError(ServerError::Other(text)) => self.hear(text),
            Event::ClientError(error) => {
                if self.said.is_none() {
                    self.said = Some(error.to_string());
                }
            }
        }
    }

    fn hear(&mut self, text: &str) {
        let subject = text.split('"').nth(1);
        let lower = text.to_lowercase();
        match subject {
            Some(subject) if lower.contains("permissions violation for publish") => {
                if self.denied.len() >= MOST_DENIED {
                    self.denied.clear();
                }
                self.denied.insert(subject.to_owned());
            }
            Some(subject) if lower.contains("permissions violation for subscription") => {
                self.deaf = Some(subject.to_owned());
            }
            _ => self.said = Some(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> News {
        let mut news = News::default();
        news.learn(&Event::ServerError(ServerError::Other(text.to_owned())));
        news
    }

    #[test]
    fn a_refused_subject_concerns_only_its_own_messages() {
        let news = heard(r#"Permissions Violation for Publish to "orders.placed""#);
        assert!(matches!(news.verdict("orders.placed"), Some(Outcome::Temporary(_))));
        assert_eq!(news.verdict("orders.paid"), None);
    }

    #[test]
    fn a_connection_without_acknowledgements_concerns_all() {
        let news = heard(r#"Permissions Violation for Subscription to "_INBOX.abc.*""#);
        let verdict = news.verdict("x");
        assert!(matches!(verdict, Some(Outcome::Unknown(reason)) if reason.text().contains("_INBOX.abc.*")));
    }

    #[test]
    fn the_last_words_of_a_server_are_told() {
        let mut news = heard("Maximum Connections Exceeded");
        assert_eq!(news.verdict("x"), None);
        news.learn(&Event::Disconnected);
        let verdict = news.verdict("x");
        assert!(matches!(verdict, Some(Outcome::Unknown(reason)) if reason.text().contains("Maximum Connections")));
    }
}
