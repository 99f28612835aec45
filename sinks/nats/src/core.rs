//! A batch through core NATS: everything sent, then one message to ourselves, which comes back when the server has read
//! all before it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use async_nats::Subscriber;
use bytes::Bytes;
use futures::StreamExt as _;
use sendoff::{Delivery, Outcome};
use tokio::time::{Instant, timeout_at};

use crate::NatsConfig;
use crate::encode::encode;
use crate::error;
use crate::link::Link;

/// Publishes a batch. One outcome a message, in its order.
pub(crate) async fn publish(link: &Link, config: &NatsConfig, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
    let deadline = Instant::now() + config.ack_timeout;
    let inbox = link.client.new_inbox();
    let Ok(echo) = link.client.subscribe(inbox.clone()).await else {
        return vec![error::unsent(None); batch.len()];
    };
    let mut sent = Vec::with_capacity(batch.len());
    let mut outcomes = Vec::with_capacity(batch.len());
    for delivery in batch {
        match send(link, config, delivery, deadline).await {
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
            outcomes[index] = news.verdict(&subject).unwrap_or_else(error::unanswered);
        }
    }
    outcomes
}

async fn send(link: &Link, config: &NatsConfig, delivery: &Delivery, deadline: Instant) -> Result<String, Outcome> {
    let outgoing = encode(config, delivery, link.client.max_payload())?;
    {
        let news = link.news.borrow();
        if let Some(denied) = news.denied(&outgoing.subject) {
            return Err(denied);
        }
        if news.lost {
            return Err(error::unsent(news.said.as_deref()));
        }
    }
    let subject = outgoing.subject.clone();
    let sending = link
        .client
        .publish_with_headers(subject, outgoing.headers, outgoing.body);
    match timeout_at(deadline, sending).await {
        Ok(Ok(())) => Ok(outgoing.subject),
        Ok(Err(refused)) => Err(error::not_taken(&refused, &outgoing.subject)),
        Err(_) => {
            link.silent.store(true, Relaxed);
            Err(error::stuck())
        }
    }
}

/// Whether the server read everything before this.
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
