//! The cost of a transaction that emits a message, over one that inserts the same bytes into a plain table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio_postgres::types::ToSql;

use crate::figure::{Figures, Goal};
use crate::subject::{Schema, connect};

/// How long each way is measured per round.
const SPAN: Duration = Duration::from_secs(3);
/// How many connections emit concurrently; the goals apply to the middle value.
const CLIENTS: [usize; 3] = [1, 4, 16];

/// A way to write one payload in a separate transaction.
#[derive(Clone, Copy)]
enum Way {
    /// Into a plain table with a number as its key.
    Bare,
    /// A message with an id from the producer.
    Insert,
    /// By the function, which generates the id.
    Function,
    /// An event, whose idempotency key is derived from it.
    Event,
}

impl Way {
    fn sql(self) -> &'static str {
        match self {
            Self::Bare => "INSERT INTO outbox_plain (payload) VALUES ($1)",
            Self::Insert => "INSERT INTO outbox_message (id, topic, payload) VALUES ($2, 'bench.topic', $1)",
            Self::Function => "SELECT outbox_emit('bench.topic', $1)",
            Self::Event => "SELECT outbox_emit('bench.topic', $1, $2, idempotency_key => $3)",
        }
    }
}

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let ways = [
        (Way::Insert, "emit_vs_bare_insert", 0.75),
        (Way::Function, "emit_fn_vs_bare_insert", 0.65),
        (Way::Event, "event_vs_bare_insert", 0.4),
    ];
    if !figures.wants(&ways.map(|(_, name, _)| name)) {
        return Ok(());
    }
    let schema = Schema::fresh("bench_price").await?;
    let table =
        "CREATE TABLE outbox_plain (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea NOT NULL)";
    schema.client.batch_execute(&schema.names.render(table)).await?;
    for clients in CLIENTS {
        let mut ratios = vec![Vec::new(); ways.len()];
        for round in 1..=figures.rounds {
            let bare = rate(&schema, Way::Bare, clients).await?;
            let mut rates = Vec::new();
            for (at, (way, ..)) in ways.iter().enumerate() {
                let rate = rate(&schema, *way, clients).await?;
                rates.push(format!("{rate:.0}/s"));
                ratios[at].push(rate / bare);
            }
            let rates = rates.join(", ");
            figures.progress(&format!(
                "emit, {clients} clients, round {round}: bare {bare:.0}/s, {rates}"
            ));
        }
        for ((_, name, goal), ratios) in ways.iter().zip(&ratios) {
            match clients {
                4 => figures.report(name, "ratio", Goal::AtLeast(*goal), ratios),
                _ => figures.report(&format!("{name}_{clients}"), "ratio", Goal::None, ratios),
            }
        }
    }
    Ok(())
}

/// Transactions per second.
async fn rate(schema: &Schema, way: Way, clients: usize) -> Result<f64> {
    let empty = schema
        .names
        .render("TRUNCATE outbox_plain, outbox_message, outbox_dedup");
    schema.client.batch_execute(&empty).await?;
    let (done, mut emitting) = (Arc::new(AtomicU64::new(0)), Vec::new());
    let mut connections = Vec::new();
    for _ in 0..clients {
        let client = connect().await?;
        let statement = client.prepare(&schema.names.render(way.sql())).await?;
        connections.push((client, statement));
    }
    let begun = Instant::now();
    for (client, statement) in connections {
        let done = done.clone();
        emitting.push(tokio::spawn(async move {
            let payload = vec![7_u8; 256];
            while begun.elapsed() < SPAN {
                let id = sendoff::Uuid::now_v7();
                let key = format!("order:{id}");
                let all: [&(dyn ToSql + Sync); 3] = [&payload, &id, &key];
                let count = statement.params().len();
                client.execute(&statement, &all[..count]).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }));
    }
    for task in emitting {
        task.await??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
}
