//! The messages before and after the server was replaced.

use std::sync::Arc;

use sendoff::Message;
use sendoff::emit::Names;
use sendoff::store::EmitStore;
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use serde_json::json;

use crate::sandbox::{TestDatabase, block_on};

const TOPICS: [&str; 3] = ["order.taken", "order.refused", "order.busy"];
const COUNT: usize = 60;
const KEYS: usize = 10;

/// How many of the old ones can be with a sink at the same time: those without a key, and the first of each key.
pub(crate) const AT_ONCE: usize = COUNT / 2 + KEYS;

/// Half of them with keys; the first sink rejects some, permanently or temporarily.
pub(crate) fn old_orders() -> Vec<Message> {
    (0..COUNT)
        .map(|n| message("old", n, TOPICS[(n / 2) % TOPICS.len()]))
        .collect()
}

/// The same keys in the same order. Those with a key are all accepted; each of the others has another outcome than the
/// old one with its number.
pub(crate) fn new_orders() -> Vec<Message> {
    let topic = |n: usize| {
        if has_key(n) {
            TOPICS[0]
        } else {
            TOPICS[(n / 2 + 1) % TOPICS.len()]
        }
    };
    (0..COUNT).map(|n| message("new", n, topic(n))).collect()
}

/// Messages that every sink accepts, half of them with their own key.
pub(crate) fn plain_orders(count: usize) -> Vec<Message> {
    let message = |n: usize| {
        let message = Message::json(TOPICS[0], &n).unwrap();
        if has_key(n) {
            message.key(format!("order-{n}"))
        } else {
            message
        }
    };
    (0..count).map(message).collect()
}

fn has_key(n: usize) -> bool {
    n.is_multiple_of(2)
}

fn message(age: &str, n: usize, topic: &str) -> Message {
    let message = Message::json(topic, &json!({"age": age, "n": n})).unwrap();
    if has_key(n) {
        message.key(format!("customer-{}", (n / 2) % KEYS))
    } else {
        message
    }
}

/// Emits them in one transaction, as an application does.
pub(crate) fn emit(place: &TestDatabase, messages: &[Message]) {
    try_emit(place, messages).unwrap();
}

/// The same on a server that may be gone.
pub(crate) fn try_emit(place: &TestDatabase, messages: &[Message]) -> sendoff::Result<()> {
    let store = store(place);
    block_on(async move {
        let mut tx = store.begin().await?;
        tx.emit(messages).await?;
        tx.commit().await
    })
}

fn store(place: &TestDatabase) -> Arc<dyn EmitStore> {
    let names = |schema: &str| Names::new(Some(schema), Names::PREFIX).unwrap();
    match place {
        TestDatabase::Postgres { url, schema } => {
            Arc::new(PostgresStore::new(PostgresConfig::new(url).names(names(schema))).unwrap())
        }
        TestDatabase::Mysql { url, schema } => {
            let (server, _) = url.rsplit_once('/').unwrap();
            let config = MysqlConfig::new(format!("{server}/{schema}")).names(names(schema));
            Arc::new(MysqlStore::new(config).unwrap())
        }
        TestDatabase::Sqlite(_) => panic!("a file does not fail over"),
    }
}
