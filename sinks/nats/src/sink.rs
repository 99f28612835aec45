//! Publishing, checking, closing.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Delivery, Error, ErrorKind, Outcome, Result, Sink};
use sendoff_wire::{Fate, Line, Parts};

use crate::dial::Dialer;
use crate::link::Link;
use crate::lookup::{self, Answer, Silence};
use crate::{Mode, NatsConfig, core, dial, jetstream};

/// The sink.
pub struct NatsSink {
    config: Arc<NatsConfig>,
    line: Line<Dialer>,
}

impl NatsSink {
    /// Sets it up. The connection is made by the first batch, or by [`Sink::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: NatsConfig) -> Result<Self> {
        config.validate()?;
        dial::check(&config)?;
        let config = Arc::new(config);
        let line = Line::new(Dialer(Arc::clone(&config)), config.connect_timeout);
        Ok(Self { config, line })
    }

    async fn send(&self, batch: &[Arc<Delivery>]) -> Vec<Fate> {
        match self.line.get().await {
            Ok(link) => self.send_by(&link, batch).await,
            Err(refusal) => vec![Fate::Settled(refusal.outcome()); batch.len()],
        }
    }

    /// By a connection that nothing else is sent through, and that ends with it.
    async fn send_apart(&self, batch: &[Arc<Delivery>]) -> Vec<Fate> {
        match self.line.apart().await {
            Ok(link) => {
                let fates = self.send_by(&link, batch).await;
                link.end().await;
                fates
            }
            Err(refusal) => vec![Fate::Settled(refusal.outcome()); batch.len()],
        }
    }

    async fn send_by(&self, link: &Link, batch: &[Arc<Delivery>]) -> Vec<Fate> {
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
            // All messages have this subject. The next connection finds out whether that is still so.
            link.silent.store(true, Relaxed);
        }
        // The server may have ended it for one of the messages, as it does for a control line that is too long.
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
        let what = "JetStream cannot be used";
        let enable = "enable JetStream on the server and for the account, or set mode = \"core\"";
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
                let why = "the server does not offer it to this account";
                return Err(Error::new(ErrorKind::Unsupported, what).because(why).next_step(enable));
            }
            Err(Silence::TooLate | Silence::Unreadable) => return self.unanswered(link),
        }
        let Some(stream) = &self.config.stream else {
            return Ok(());
        };
        match lookup::ask(&link.jetstream, &format!("STREAM.INFO.{stream}"), &()).await {
            Ok(Answer { error: None, .. }) => Ok(()),
            Ok(Answer {
                error: Some(refused), ..
            }) => Err(
                Error::new(ErrorKind::NotFound, format!("the stream {stream} cannot be used"))
                    .because(refused.to_string())
                    .next_step("create it, or change stream in the settings of the sink"),
            ),
            Err(Silence::Nobody | Silence::TooLate | Silence::Unreadable) => self.unanswered(link),
        }
    }

    /// An account that may only publish gets no answer to questions about JetStream; that is no reason to refuse it.
    fn unanswered(&self, link: &Link) -> Result<()> {
        let news = link.news.borrow();
        let api = match (&self.config.domain, &self.config.api_prefix) {
            (Some(domain), _) => format!("$JS.{domain}.API.INFO"),
            (None, Some(prefix)) => format!("{prefix}.INFO"),
            (None, None) => "$JS.API.INFO".to_owned(),
        };
        if news.denied(&api).is_some() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unreachable, "JetStream does not answer")
            .because(format!("there was no answer within {:?}", lookup::PATIENCE))
            .next_step("check the cluster's leader, the domain, and the permissions of the account"))
    }
}

#[async_trait]
impl Sink for NatsSink {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
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
            // A connection, a batch, and a stream that changes its leader meanwhile.
            timeout: Some(config.connect_timeout + config.ack_timeout * 2 + Duration::from_secs(3)),
        }
    }

    async fn check(&self) -> Result<()> {
        let link = self.line.get().await?;
        if let Some(why) = link.deaf() {
            return Err(Error::new(ErrorKind::Denied, "NATS acknowledges nothing").because(why));
        }
        match self.config.mode {
            Mode::JetStream => self.check_jetstream(&link).await,
            // Connecting is all that can be checked without sending.
            Mode::Core => Ok(()),
        }
    }

    async fn close(&self) {
        if let Some(link) = self.line.hang_up().await {
            link.end().await;
        }
    }
}
