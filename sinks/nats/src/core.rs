//! Publishes a batch with core NATS: sends all messages, then one message to the sink itself. When that arrives, the
//! server has read all messages before it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use async_nats::Subscriber;
use bytes::Bytes;
use futures::StreamExt as _;
use sendoff::{Outcome, Outgoing};
use tokio::time::{Instant, timeout_at};

use crate::NatsConfig;
use crate::encode::encode;
use crate::error;
use crate::link::Link;

/// Publishes a batch. Returns one outcome per message, in order.
pub(crate) async fn publish(link: &Link, config: &NatsConfig, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
    let deadline = Instant::now() + config.ack_timeout;
    let inbox = link.client.new_inbox();
    let Ok(echo) = link.client.subscribe(inbox.clone()).await else {
        return vec![error::unsent(None); batch.len()];
    };
    let mut sent = Vec::with_capacity(batch.len());
    let mut outcomes = Vec::with_capacity(batch.len());
    for outgoing in batch {
        match send(link, config, outgoing, deadline).await {
            Ok(subject) => {
                sent.push((outcomes.len(), subject));
                outcomes.push(Outcome::Delivered);
            }
            Err(outcome) => outcomes.push(outcome),
        }
    }
    let was_read = was_read(link, echo, inbox, deadline).await;
    let news = link.news.borrow();
    for (index, subject) in sent {
        if let Some(denied) = news.denied(&subject) {
            outcomes[index] = denied;
        } else if !was_read {
            outcomes[index] = news.verdict(&subject).unwrap_or_else(|| error::unanswered(&subject));
        }
    }
    outcomes
}

async fn send(link: &Link, config: &NatsConfig, outgoing: &Outgoing, deadline: Instant) -> Result<String, Outcome> {
    let prepared = encode(config, outgoing, link.client.max_payload())?;
    {
        let news = link.news.borrow();
        if let Some(denied) = news.denied(&prepared.subject) {
            return Err(denied);
        }
        if news.lost {
            return Err(error::unsent(news.said.as_deref()));
        }
    }
    let subject = prepared.subject.clone();
    let sending = link
        .client
        .publish_with_headers(subject, prepared.headers, prepared.body);
    match timeout_at(deadline, sending).await {
        Ok(Ok(())) => Ok(prepared.subject),
        Ok(Err(refused)) => Err(error::not_taken(&refused, &prepared.subject)),
        Err(_) => {
            link.silent.store(true, Relaxed);
            Err(error::stuck())
        }
    }
}

/// Whether the server has read all messages sent before.
async fn was_read(link: &Link, mut echo: Subscriber, inbox: String, deadline: Instant) -> bool {
    let mut news = link.news.clone();
    let subject = inbox.clone();
    let round_trip = async { link.client.publish(subject, Bytes::new()).await.is_ok() && echo.next().await.is_some() };
    let came_back = tokio::select! {
        came_back = timeout_at(deadline, round_trip) => came_back.ok(),
        _ = news.wait_for(|news| news.lost || news.verdict(&inbox).is_some()) => Some(false),
    };
    if came_back.is_none() {
        link.silent.store(true, Relaxed);
    }
    came_back == Some(true)
}
