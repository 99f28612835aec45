//! An application that uses the store: its commands and messages are committed together, and a relay delivers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{EmitTransaction, OperateStore, RelayStore};
use sendoff::{Emitted, ErrorKind, Message};
use sendoff_example_redis_store::RedisStore;
use sendoff_relay::Relay;
use sendoff_testkit::ScriptedSink;
use sendoff_testkit::servers::Redis;
use tokio_util::sync::CancellationToken;

async fn get(server: &Redis, key: &str) -> Option<String> {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd("GET").arg(key).query_async(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_command_and_its_message_are_carried_out_together() {
    let server = Redis::start().await;
    let store = RedisStore::new(&server.url(), "outbox").unwrap();
    let mut transaction = store.transaction().await.unwrap();
    transaction.command(["SET", "order:1", "placed"]);
    let message = Message::json("order.placed", &1).unwrap().key("customer-1");
    let _ = store.outbox().emit(&mut transaction, message).await.unwrap();
    assert_eq!(
        get(&server, "order:1").await,
        None,
        "nothing is written before the commit"
    );
    assert_eq!(store.backlog().await.unwrap().ready, 0);
    Box::new(transaction).commit().await.unwrap();
    assert_eq!(get(&server, "order:1").await.as_deref(), Some("placed"));

    let sink = Arc::new(ScriptedSink::new());
    let relay = Relay::builder(Arc::new(store.clone()))
        .sink("out", sink.clone())
        .route("*".parse().unwrap(), ["out"])
        .build()
        .unwrap();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!((report.run.delivered, report.remaining.ready), (1, 0));
    assert_eq!(store.summary().await.unwrap().ready, 0);
}

#[tokio::test]
async fn a_message_does_not_leave_when_redis_refuses_the_applications_command() {
    let server = Redis::start().await;
    let store = RedisStore::new(&server.url(), "outbox").unwrap();
    let mut transaction = store.transaction().await.unwrap();
    transaction.command(["SET", "count", "many"]);
    transaction.command(["INCR", "count"]);
    let once = Message::json("counted", &1).unwrap().idempotency_key("first");
    let _ = store.outbox().emit(&mut transaction, once.clone()).await.unwrap();
    let refused = Box::new(transaction).commit().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Backend, "{refused}");
    assert_eq!(store.backlog().await.unwrap().ready, 0);
    // The idempotency key is free again shortly after the transaction is dropped.
    let mut transaction = store.transaction().await.unwrap();
    let emitted = store.outbox().emit(&mut transaction, once).await.unwrap();
    assert!(matches!(emitted, Emitted::Stored { .. }), "{emitted:?}");
    Box::new(transaction).commit().await.unwrap();
    assert_eq!(store.backlog().await.unwrap().ready, 1);
}

#[tokio::test]
async fn a_server_that_is_away_is_unreachable_and_comes_back() {
    let mut server = Redis::start().await;
    let store = RedisStore::new(&server.url(), "outbox").unwrap();
    let mut transaction = store.transaction().await.unwrap();
    let message = Message::json("t", &1).unwrap();
    let _ = store.outbox().emit(&mut transaction, message).await.unwrap();
    Box::new(transaction).commit().await.unwrap();
    server.kill();
    let away = store.backlog().await.unwrap_err();
    assert!(away.is_temporary() && away.kind() == ErrorKind::Unreachable, "{away}");
    server.restart().await;
    let back = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            match store.backlog().await {
                Ok(backlog) => return backlog,
                Err(error) => assert!(error.is_temporary(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert_eq!(
        back.await.unwrap().ready,
        1,
        "a committed message survives a kill of the server"
    );
}
