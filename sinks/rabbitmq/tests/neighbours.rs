//! A message that makes the broker close the connection fails alone: the sink stays up, and other messages are
//! delivered.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use sendoff::{Outcome, Uuid};
use sendoff_sink_rabbitmq::publisher::{Prepared, Publisher, Settings, Topology};
use sendoff_testkit::servers::RabbitMq;
use sendoff_wire::Address;

mod broker;
use broker::Consumer;

/// A message with a field type of AMQP 0-9-1 that RabbitMQ reads as another type, so that it cannot parse the frame.
fn prepared(queue: &str, id: Uuid, unreadable: bool) -> Prepared {
    let mut headers = FieldTable::default();
    if unreadable {
        headers.insert("s".into(), AMQPValue::ShortString("some text".into()));
    }
    Prepared {
        exchange: "".into(),
        routing_key: queue.into(),
        properties: BasicProperties::default()
            .with_message_id(id.to_string().into())
            .with_headers(headers),
        body: "{}".into(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_broker_ends_the_connection_for_fails_alone() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[]).await;
    let publisher = Publisher::new(Settings::new(Address::parse(&url).unwrap()), Topology::default()).unwrap();
    for bad in [&[0][..], &[30], &[59], &[3, 30, 31]] {
        let ids: Vec<Uuid> = (0..60).map(|_| Uuid::now_v7()).collect();
        let make = |at: usize| Ok(prepared(&queue, ids[at], bad.contains(&at)));
        let outcomes = publisher.publish(60, make).await;
        for (at, outcome) in outcomes.iter().enumerate() {
            match bad.contains(&at) {
                true => assert!(matches!(outcome, Outcome::Unknown(_)), "{at}: {outcome:?}"),
                false => assert_eq!(*outcome, Outcome::Delivered, "{at} of 60, bad are {bad:?}"),
            }
        }
        let arrived: HashSet<String> = consumer.drain(&queue).await.into_iter().collect();
        let well = (0..60).filter(|at| !bad.contains(at)).map(|at| ids[at].to_string());
        assert_eq!(arrived, well.collect());
    }
    publisher.close().await;
}
