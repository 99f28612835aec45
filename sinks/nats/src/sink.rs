//! Publishing, checking, closing.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Result, Sink};
use sendoff_wire::{Connections, Fate, Parts};

use crate::connect::Connector;
use crate::link::Link;
use crate::lookup::{self, Answer, Silence};
use crate::{Mode, NatsConfig, connect, core, jetstream};

/// Publishes messages to NATS.
pub struct NatsSink {
    config: Arc<NatsConfig>,
    connections: Connections<Connector>,
}

impl NatsSink {
    /// Creates the sink. It connects when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: NatsConfig) -> Result<Self> {
        config.validate()?;
        connect::check(&config)?;
        let config = Arc::new(config);
        let connections = Connections::new(Connector(Arc::clone(&config)), config.connect_timeout);
        Ok(Self { config, connections })
    }

    async fn send(&self, batch: &[Arc<Outgoing>]) -> Vec<Fate> {
        match self.connections.get().await {
            Ok(link) => self.send_by(&link, batch).await,
            Err(refusal) => vec![Fate::Settled(refusal.outcome()); batch.len()],
        }
    }

    /// Sends a batch on a separate connection, and closes it.
    async fn send_apart(&self, batch: &[Arc<Outgoing>]) -> Vec<Fate> {
        match self.connections.apart().await {
            Ok(link) => {
                let fates = self.send_by(&link, batch).await;
                link.end().await;
                fates
            }
            Err(refusal) => vec![Fate::Settled(refusal.outcome()); batch.len()],
        }
    }

    async fn send_by(&self, link: &Link, batch: &[Arc<Outgoing>]) -> Vec<Fate> {
        let outcomes = match self.config.mode {
            Mode::JetStream => jetstream::publish(link, &self.config, batch).await,
            Mode::Core => core::publish(link, &self.config, batch).await,
        };
        let denied = self
            .config
            .subject
            .as_fixed()
            .and_then(|subject| link.news.borrow().denied(subject));
        if denied.is_some() {
            // All messages have this subject. The next connection checks again.
            link.silent.store(true, Relaxed);
        }
        // The server may have closed it because of one message, for example for a control line that is too long.
        let lost = link.is_lost();
        let fate = |outcome: Outcome| match outcome {
            Outcome::Temporary(reason) if denied == Some(Outcome::Temporary(reason.clone())) => {
                Fate::Settled(Outcome::SinkDown(reason))
            }
            Outcome::Unknown(_) | Outcome::SinkDown(_) if lost => Fate::Broken(outcome),
            outcome => Fate::Settled(outcome),
        };
        outcomes.into_iter().map(fate).collect()
    }

    async fn check_jetstream(&self, link: &Link) -> Result<()> {
        let what = "the NATS sink cannot use JetStream";
        let enable = "enable JetStream on the server and for the account, or set `mode = \"core\"` of the sink";
        match lookup::ask(&link.jetstream, "INFO", &()).await {
            Ok(Answer { error: None, .. }) => {}
            Ok(Answer {
                error: Some(refused), ..
            }) => {
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .because(refused.to_string())
                    .next_step(enable));
            }
            Err(Silence::Nobody) => {
                let why = "it is not enabled for this account";
                return Err(Error::new(ErrorKind::Unsupported, what).because(why).next_step(enable));
            }
            Err(why @ (Silence::TooLate | Silence::Unreadable)) => return self.unanswered(link, why),
        }
        let Some(stream) = &self.config.stream else {
            return Ok(());
        };
        match lookup::ask(&link.jetstream, &format!("STREAM.INFO.{stream}"), &()).await {
            Ok(Answer { error: None, .. }) => Ok(()),
            Ok(Answer {
                error: Some(refused), ..
            }) => Err(Error::new(
                ErrorKind::NotFound,
                format!("the NATS sink cannot use the stream {stream}"),
            )
            .because(refused.to_string())
            .next_step("create the stream, or change `stream` in the settings of the sink")),
            Err(why @ (Silence::Nobody | Silence::TooLate | Silence::Unreadable)) => self.unanswered(link, why),
        }
    }

    /// An account that may only publish gets no answer to requests about JetStream; the check accepts that.
    fn unanswered(&self, link: &Link, why: Silence) -> Result<()> {
        let news = link.news.borrow();
        let api = match (&self.config.domain, &self.config.api_prefix) {
            (Some(domain), _) => format!("$JS.{domain}.API.INFO"),
            (None, Some(prefix)) => format!("{prefix}.INFO"),
            (None, None) => "$JS.API.INFO".to_owned(),
        };
        if news.denied(&api).is_some() {
            return Ok(());
        }
        let why = match why {
            Silence::Nobody => "no server responds to the request".to_owned(),
            Silence::TooLate => format!("no answer within {:?}", lookup::PATIENCE),
            Silence::Unreadable => "the request failed, or its answer cannot be read".to_owned(),
        };
        Err(Error::new(ErrorKind::Unreachable, "the NATS sink cannot use JetStream")
            .because(why)
            .next_step("check that the cluster has a leader, `domain` or `api_prefix` of the sink, and the permissions of the account"))
    }
}

#[async_trait]
impl Sink for NatsSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let mut parts = Parts::new(batch.len());
        while let Some(part) = parts.next() {
            let fates = if parts.broke() {
                let messages: Vec<_> = part.iter().map(|place| Arc::clone(&batch[*place])).collect();
                self.send_apart(&messages).await
            } else {
                self.send(batch).await
            };
            parts.settle(&part, fates);
        }
        parts.into_outcomes()
    }

    fn limits(&self) -> Limits {
        let config = &self.config;
        Limits {
            batch: None,
            // Time for a connection, a batch, and a stream that changes its leader meanwhile.
            timeout: Some(config.connect_timeout + config.ack_timeout * 2 + Duration::from_secs(3)),
        }
    }

    async fn check(&self) -> Result<()> {
        let link = self.connections.get().await?;
        if let Some(why) = link.deaf() {
            return Err(Error::new(ErrorKind::Denied, "the NATS sink cannot receive acknowledgements").because(why));
        }
        match self.config.mode {
            Mode::JetStream => self.check_jetstream(&link).await,
            // Without sending, only the connection can be checked.
            Mode::Core => Ok(()),
        }
    }

    async fn close(&self) {
        if let Some(link) = self.connections.close().await {
            link.end().await;
        }
    }
}
