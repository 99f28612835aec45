//! A dropped batch, as after a timeout of the relay.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::Duration;

use sendoff::Sink as _;
use sendoff_sink_rabbitmq::RabbitMqConfig;
use sendoff_testkit::servers::RabbitMq;
use sendoff_testkit::{Fault, FaultProxy};
use tokio::time::{Instant, sleep};

mod broker;
use broker::{Consumer, all_delivered, batch, ids, sink, to_queues};

const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that is only dropped sends a close and waits for the answer as long as the broker is silent: its thread
/// stays alive, with the messages that it would still send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_dropped_takes_its_connection_with_it() {
    let url = RabbitMq::shared().url().to_owned();
    let port = url.rsplit_once(':').unwrap().1.split('/').next().unwrap();
    let port = port.parse().unwrap();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[]).await;
    let proxy = FaultProxy::start(port).await;
    let sink = Arc::new(sink(RabbitMqConfig {
        // The client must not notice by itself.
        heartbeat: Duration::from_secs(600),
        ..to_queues(&proxy.url(&url, port))
    }));
    all_delivered(&sink.publish(&batch([&queue])).await);
    assert_eq!(proxy.open(), 1);
    assert_eq!(consumer.drain(&queue).await.len(), 1);

    proxy.set(Fault::HoldAnswers);
    let dropped = batch(vec![&queue; 4]);
    let publishing = tokio::spawn({
        let (sink, dropped) = (Arc::clone(&sink), dropped.clone());
        async move { sink.publish(&dropped).await }
    });
    let (begin, mut arrived) = (Instant::now(), Vec::new());
    while arrived.len() < dropped.len() {
        assert!(begin.elapsed() < PATIENCE, "{} arrived", arrived.len());
        arrived.extend(consumer.drain(&queue).await);
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(arrived, ids(&dropped));
    publishing.abort();
    assert!(publishing.await.is_err(), "the batch must not end before a confirm");
    let begin = Instant::now();
    while proxy.open() > 0 {
        assert!(begin.elapsed() < PATIENCE, "its connection must close");
        sleep(Duration::from_millis(5)).await;
    }

    proxy.set(Fault::Pass);
    let next = batch(vec![&queue; 4]);
    all_delivered(&sink.publish(&next).await);
    assert_eq!(consumer.drain(&queue).await, ids(&next));
}
