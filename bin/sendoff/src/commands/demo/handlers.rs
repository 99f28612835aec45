//! The handlers of the shop's messages: a warehouse and a mail server, both flaky.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::DeadReason;
use sendoff::{Outgoing, Result};
use sendoff_relay::{HookResult, Hooks};
use sendoff_sink_handlers::{Context, HandlerError, Handlers};
use serde::Deserialize;

use super::record::Record;

#[derive(Deserialize)]
struct Order {
    order: u64,
    customer: String,
    ware: String,
}

/// The sink of the demo.
pub(super) fn handlers(record: &Record) -> Result<Handlers> {
    let (warehouse, mail) = (record.clone(), record.clone());
    Handlers::builder()
        .on("order.placed", move |order: Order, context: Context| {
            pack(order, context, warehouse.clone())
        })
        .on("mail.confirmation", move |order: Order, context: Context| {
            send_mail(order, context, mail.clone())
        })
        .build()
}

async fn pack(order: Order, context: Context, warehouse: Record) -> Result<(), HandlerError> {
    warehouse.seen(context.id());
    tokio::time::sleep(Duration::from_millis(1)).await;
    if order.order.is_multiple_of(23) && context.attempts() == 0 {
        return Err(HandlerError::transient("all packers are at lunch"));
    }
    if order.order.is_multiple_of(241) {
        return Err(HandlerError::permanent("the ware is out of production"));
    }
    let words = format!("order {}: {} packed for {}", order.order, order.ware, order.customer);
    warehouse.arrived(context.id(), words);
    Ok(())
}

async fn send_mail(order: Order, context: Context, mail: Record) -> Result<(), HandlerError> {
    mail.seen(context.id());
    tokio::time::sleep(Duration::from_millis(3)).await;
    if order.order.is_multiple_of(9) && context.attempts() < 2 {
        return Err(HandlerError::transient("the mail server is busy"));
    }
    if order.order.is_multiple_of(82) {
        return Err(HandlerError::permanent("the address does not exist"));
    }
    if order.order.is_multiple_of(150) {
        return Err(HandlerError::transient("the mailbox is full"));
    }
    mail.arrived(
        context.id(),
        format!("order {}: mail sent to {}", order.order, order.customer),
    );
    Ok(())
}

/// Records what the relays decided.
pub(super) struct Watch(pub(super) Record);

impl Watch {
    pub(super) fn new(record: &Record) -> Arc<Self> {
        Arc::new(Self(record.clone()))
    }
}

#[async_trait]
impl Hooks for Watch {
    async fn failed(
        &self,
        outgoing: &Arc<Outgoing>,
        _: &str,
        attempts: u32,
        error: &str,
        delay: Duration,
    ) -> HookResult {
        let (topic, ms) = (&outgoing.topic, delay.as_millis());
        self.0
            .failed(format!("{topic}: {error}; attempt {} in {ms} ms", attempts + 1));
        Ok(())
    }

    async fn dead_lettered(&self, outgoing: &Arc<Outgoing>, _: &str, reason: DeadReason, error: &str) -> HookResult {
        let (topic, reason) = (&outgoing.topic, reason.as_str());
        self.0
            .died(format!("{topic}: {error} ({reason}); kept as a dead letter"));
        Ok(())
    }
}
