//! A small shop: it writes orders into its own table, and emits messages in the same transactions.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};
use sendoff::{Error, ErrorKind, Message, Outbox, Result, Uuid};
// Linking this crate lets the outbox take a rusqlite transaction.
use sendoff_rusqlite as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::record::Record;

const CUSTOMERS: u64 = 40;
const WARES: [&str; 6] = ["a teapot", "two lamps", "a kite", "a globe", "six chairs", "a clock"];

/// The shop with its own connection, like an application.
pub(super) struct Shop {
    connection: Connection,
    outbox: Outbox,
    record: Record,
    /// How many transactions it has started.
    number: u64,
}

impl Shop {
    /// Opens the shop in the database of the outbox.
    pub(super) fn open(path: &Path, outbox: Outbox, record: Record) -> Result<Self> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                 CREATE TABLE orders (
                     number INTEGER PRIMARY KEY, customer TEXT NOT NULL, ware TEXT NOT NULL, cents INTEGER NOT NULL
                 ) STRICT;",
            )?;
            Ok(connection)
        };
        Ok(Self {
            connection: open().map_err(|error| trouble("the shop cannot open its database", error))?,
            outbox,
            record,
            number: 0,
        })
    }

    /// Takes about `rate` orders per second until `stop` is cancelled.
    pub(super) fn trade(&mut self, rate: u32, stop: &CancellationToken) -> Result<()> {
        let pause = Duration::from_secs(1) / rate.max(1);
        let mut next = Instant::now();
        while !stop.is_cancelled() {
            self.take_order()?;
            next += pause;
            let now = Instant::now();
            // After a long stall it continues at its pace instead of catching up in one burst.
            next = next.max(now - Duration::from_millis(250));
            std::thread::sleep(next.saturating_duration_since(now));
        }
        Ok(())
    }

    /// The number of orders in its table.
    pub(super) fn orders(&self) -> Result<u64> {
        self.connection
            .query_row("SELECT count(*) FROM orders", [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(|error| trouble("the shop cannot count its orders", error))
    }

    /// One transaction: an order, its message, and a mail for every second order. One in ten is rolled back after all
    /// of this was written, because the customer's card is declined.
    fn take_order(&mut self) -> Result<()> {
        self.number += 1;
        let number = self.number;
        // Consecutive orders have different customers.
        let customer = format!("customer-{}", number * 7 % CUSTOMERS + 1);
        let ware = WARES[usize::try_from(number).unwrap_or(0) % WARES.len()];
        let cents = 500 + number * 37 % 9000;
        let payload = json!({"order": number, "customer": customer, "ware": ware, "cents": cents});

        let mut messages = vec![Message::json("order.placed", &payload)?.key(&customer)];
        if number.is_multiple_of(2) {
            messages.push(Message::json("mail.confirmation", &payload)?);
        }
        let ids: Vec<(Uuid, Option<String>)> = messages
            .iter()
            .map(|message| (message.id(), message.ordering_key().map(str::to_owned)))
            .collect();

        let failed = |error| trouble("the shop cannot write an order", error);
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        tx.execute(
            "INSERT INTO orders (number, customer, ware, cents) VALUES (?1, ?2, ?3, ?4)",
            params![number.cast_signed(), customer, ware, cents.cast_signed()],
        )
        .map_err(failed)?;
        // They have no idempotency key, so none of them is a duplicate.
        let _ = self.outbox.emit_many_blocking(&tx, messages)?;
        if number % 10 == 3 {
            tx.rollback().map_err(failed)?;
            let words = format!("order {number}: the card of {customer} was declined, everything is rolled back");
            self.record
                .rolled_back(ids.into_iter().map(|(id, _)| id).collect(), words);
            return Ok(());
        }
        tx.commit().map_err(failed)?;
        self.record
            .committed(number, ids, format!("order {number}: {customer} bought {ware}"));
        self.outbox.wake();
        Ok(())
    }
}

fn trouble(what: &str, error: rusqlite::Error) -> Error {
    Error::new(ErrorKind::Backend, what)
        .because(error.to_string())
        .next_step("check the free disk space and start the demo again")
        .with_source(error)
}
