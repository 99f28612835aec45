//! A task for Celery's workers, emitted in the transaction of its order.
//!
//! If `BROKER_URL` is set, the task goes to that broker. Otherwise the example prints what workers would get.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::celery::config::Declare;
use sendoff::sinks::celery::{CeleryConfig, CelerySink, Encoder, TaskCall};
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Outbox, Outcome, Outgoing, Sink, Task};
use sqlx::PgPool;

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("celery").await?;
    let pool = PgPool::connect(&url).await?;
    sqlx::query("CREATE TABLE orders (id bigint PRIMARY KEY)")
        .execute(&pool)
        .await?;

    // `sendoff migrate` does this once per deployment.
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    let outbox = Outbox::new();
    let mut tx = pool.begin().await?;
    sqlx::query("INSERT INTO orders (id) VALUES (42)")
        .execute(&mut *tx)
        .await?;
    let task = Task::new("shop.charge").args((42, "EUR"))?;
    let task_id = outbox.emit(&mut tx, task).await?.id();
    tx.commit().await?;
    println!("task {task_id} will run");

    // This relay delivers what is due and stops. A service runs one in the background, or uses `sendoff relay`.
    let sink: Arc<dyn Sink> = match std::env::var("BROKER_URL") {
        Ok(broker) => Arc::new(CelerySink::new(&CeleryConfig {
            declare: Declare::Active,
            ..CeleryConfig::new(&broker)?
        })?),
        Err(_) => Arc::new(Show(Encoder::new(&CeleryConfig::default())?)),
    };
    let relay = Relay::builder(Arc::new(store))
        .sink("celery", sink)
        .route("shop.*".parse()?, ["celery"])
        .build()?;
    let report = relay.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.processed()), (1, 1));
    Ok(())
}

/// Prints tasks instead of sending them.
struct Show(Encoder);

#[async_trait]
impl Sink for Show {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        batch.iter().map(|outgoing| self.show(outgoing)).collect()
    }
}

impl Show {
    fn show(&self, outgoing: &Outgoing) -> Outcome {
        let message = TaskCall::from_delivery(outgoing).and_then(|call| {
            let now = call.created_at;
            self.0.encode(&call, now)
        });
        match message {
            Ok(message) => {
                println!(
                    "to {}: {}",
                    message.destination.routing_key,
                    String::from_utf8_lossy(&message.body)
                );
                Outcome::Delivered
            }
            Err(error) => Outcome::Permanent(error.to_string().into()),
        }
    }
}
