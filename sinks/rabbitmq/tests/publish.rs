//! Outcomes of messages on a working broker.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::Duration;

use lapin::ExchangeKind;
use lapin::types::{AMQPValue, FieldTable};
use sendoff::{Outcome, Outgoing, Sink};
use sendoff_sink_rabbitmq::RabbitMqConfig;
use sendoff_sink_rabbitmq::publisher::Declare;
use sendoff_testkit::servers::RabbitMq;

mod broker;
use broker::{Consumer, all_delivered, batch, down, ids, message, name, permanent, sink, to_queues};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_arrives_whole_and_in_order() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[]).await;
    let sink = sink(to_queues(&url));
    for window in [1000, 7] {
        let mut config = to_queues(&url);
        config.window = window;
        let sink = broker::sink(config);
        let messages = batch(vec![&queue; 500]);
        all_delivered(&sink.publish(&messages).await);
        assert_eq!(consumer.drain(&queue).await, ids(&messages), "window {window}");
        sink.close().await;
    }
    assert!(sink.publish(&[]).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_no_queue_takes_is_returned_and_only_that() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let (queue, exchange) = (consumer.queue(&[]).await, consumer.exchange(ExchangeKind::Topic).await);
    consumer.bind(&queue, &exchange, "order.*", FieldTable::default()).await;
    let sink = sink(RabbitMqConfig::new(&url, &exchange).unwrap());
    // Many, so that the broker confirms several together: the client then guesses which of them was returned.
    for _ in 0..20 {
        let topics: Vec<&str> = (0..100)
            .map(|at| if at % 7 == 3 { "refund.made" } else { "order.placed" })
            .collect();
        let messages = batch(&topics);
        let outcomes = sink.publish(&messages).await;
        for (topic, outcome) in topics.iter().zip(&outcomes) {
            match *topic {
                "refund.made" => permanent(outcome, &["312", "NO_ROUTE", &exchange, "refund.made", "bind"]),
                _ => assert_eq!(*outcome, Outcome::Delivered),
            }
        }
        let routed: Vec<Arc<Outgoing>> = messages
            .into_iter()
            .filter(|message| message.topic == "order.placed")
            .collect();
        assert_eq!(consumer.drain(&queue).await, ids(&routed));
    }
    let outcomes = broker::sink(to_queues(&url)).publish(&batch(["no-such-queue"])).await;
    permanent(&outcomes[0], &["312", "no-such-queue", "declare the queue"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_exchange_concerns_only_the_messages_that_name_it() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let (queue, exchange) = (consumer.queue(&[]).await, consumer.exchange(ExchangeKind::Fanout).await);
    consumer.bind(&queue, &exchange, "", FieldTable::default()).await;
    let missing = name("missing");
    let config = RabbitMqConfig::new(&url, "{topic}").unwrap();
    let sink = sink(config);
    let topics = [&exchange, &missing, &exchange, &missing, &exchange];
    let messages = batch(topics);
    let outcomes = sink.publish(&messages).await;
    for (topic, outcome) in topics.iter().zip(&outcomes) {
        match *topic == &missing {
            true => permanent(outcome, &["no exchange", &missing, "declare"]),
            false => assert_eq!(*outcome, Outcome::Delivered),
        }
    }
    let arrived: Vec<String> = [0, 2, 4].map(|at: usize| messages[at].id.to_string()).into();
    assert_eq!(consumer.drain(&queue).await, arrived);
    // The next batch is not affected.
    all_delivered(&sink.publish(&batch([&exchange, &exchange])).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_is_deleted_under_way_takes_no_neighbour_with_it() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let (queue, doomed) = (consumer.queue(&[]).await, consumer.exchange(ExchangeKind::Fanout).await);
    let kept = consumer.exchange(ExchangeKind::Fanout).await;
    for exchange in [&kept, &doomed] {
        consumer.bind(&queue, exchange, "", FieldTable::default()).await;
    }
    let sink = sink(RabbitMqConfig::new(&url, "{topic}").unwrap());
    // The sink has checked both exchanges, and does not check again.
    all_delivered(&sink.publish(&batch([&kept, &doomed])).await);
    consumer.drain(&queue).await;
    consumer
        .channel
        .exchange_delete(doomed.as_str().into(), Default::default())
        .await
        .unwrap();
    let topics: Vec<&String> = (0..200).map(|at| if at == 50 { &doomed } else { &kept }).collect();
    let messages = batch(&topics);
    let outcomes = sink.publish(&messages).await;
    for (at, outcome) in outcomes.iter().enumerate() {
        match at {
            50 => permanent(outcome, &["no exchange", &doomed]),
            _ => assert_eq!(*outcome, Outcome::Delivered, "message {at}"),
        }
    }
    let arrived = consumer.drain(&queue).await;
    for (at, id) in ids(&messages).iter().enumerate() {
        assert_eq!(arrived.contains(id), at != 50, "message {at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_one_exchange_the_sink_is_down_until_it_is_declared() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let exchange = name("later");
    let sink = sink(RabbitMqConfig::new(&url, &exchange).unwrap());
    for outcome in sink.publish(&batch(["a", "b"])).await {
        down(&outcome, &["no exchange", &exchange, "declare"]);
    }
    assert!(sink.check().await.unwrap_err().to_string().contains(&exchange));
    let declared = consumer.channel.exchange_declare(
        exchange.as_str().into(),
        ExchangeKind::Fanout,
        Default::default(),
        FieldTable::default(),
    );
    declared.await.unwrap();
    let queue = consumer.queue(&[]).await;
    consumer.bind(&queue, &exchange, "", FieldTable::default()).await;
    sink.check().await.unwrap();
    assert_eq!(
        consumer.drain(&queue).await,
        Vec::<String>::new(),
        "a check sends nothing"
    );
    all_delivered(&sink.publish(&batch(["a", "b"])).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_that_rejects_is_a_temporary_failure() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let full = consumer
        .queue(&[
            ("x-max-length", AMQPValue::LongInt(2)),
            ("x-overflow", AMQPValue::LongString("reject-publish".into())),
        ])
        .await;
    let sink = sink(to_queues(&url));
    all_delivered(&sink.publish(&batch([&full])).await);
    all_delivered(&sink.publish(&batch([&full])).await);
    let roomy = consumer.queue(&[]).await;
    let outcomes = sink.publish(&batch([&full, &roomy])).await;
    assert!(
        matches!(&outcomes[0], Outcome::Temporary(reason) if reason.text().contains("full")),
        "{outcomes:?}"
    );
    assert_eq!(outcomes[1], Outcome::Delivered);
    consumer.drain(&full).await;
    all_delivered(&sink.publish(&batch([&full])).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchange_key_and_headers_are_filled_in_from_the_message() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let (queue, exchange) = (
        consumer.queue(&[]).await,
        consumer.exchange(ExchangeKind::Headers).await,
    );
    let mut wanted = FieldTable::default();
    wanted.insert("region".into(), AMQPValue::LongString("eu-shop".into()));
    consumer.bind(&queue, &exchange, "", wanted).await;
    let mut config = RabbitMqConfig::new(&url, "{header:exchange}").unwrap();
    config.routing_key = "{topic}.{key}".parse().unwrap();
    config.headers = [("region".to_owned(), "{header:region}-shop".parse().unwrap())].into();
    let sink = sink(config);
    let made = |region: &str| {
        let mut outgoing = message("order.placed");
        outgoing.key = Some("k1".into());
        outgoing.headers.insert("exchange", exchange.as_str());
        outgoing.headers.insert("region", region);
        outgoing.payload = vec![0, 159, 146, 150].into();
        outgoing.content_type = Some("application/octet-stream".into());
        Arc::new(outgoing)
    };
    let mut without = message("order.placed");
    without.headers.insert("exchange", exchange.as_str());
    let messages = [made("eu"), made("us"), Arc::new(without)];
    let outcomes = sink.publish(&messages).await;
    assert_eq!(outcomes[0], Outcome::Delivered);
    permanent(&outcomes[1], &["312"]);
    permanent(&outcomes[2], &["has no"]);
    let arrived = consumer.get(&queue).await.unwrap();
    assert_eq!(arrived.routing_key.as_str(), "order.placed.k1");
    assert_eq!(arrived.data, [0, 159, 146, 150]);
    let properties = &arrived.properties;
    assert_eq!(
        properties.message_id().as_ref().unwrap().as_str(),
        messages[0].id.to_string()
    );
    assert_eq!(properties.timestamp(), &Some(1_700_000_000));
    assert_eq!(properties.delivery_mode(), &Some(2));
    let headers = properties.headers().as_ref().unwrap();
    assert_eq!(headers.inner()["region"], AMQPValue::LongString("eu-shop".into()));
    assert!(consumer.get(&queue).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_higher_priority_are_consumed_first() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[("x-max-priority", AMQPValue::LongInt(9))]).await;
    let with = |priority| {
        let mut outgoing = message(&queue);
        outgoing.priority = priority;
        Arc::new(outgoing)
    };
    let messages = [with(-5), with(3), with(0), with(500), with(9)];
    all_delivered(&sink(to_queues(&url)).publish(&messages).await);
    let sorted: Vec<String> = [3, 4, 1, 0, 2].map(|at: usize| messages[at].id.to_string()).into();
    assert_eq!(consumer.drain(&queue).await, sorted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_is_declared() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let (exchange, queue) = (name("declared"), name("declared"));
    let mut config = RabbitMqConfig::new(&url, &exchange).unwrap();
    config.declare = Declare::Passive;
    config.queue = Some(queue.clone());
    config.binding_key = "order.#".into();
    let outcomes = sink(config.clone()).publish(&batch(["order.placed"])).await;
    down(&outcomes[0], &["no queue", &queue, "active"]);
    config.declare = Declare::Active;
    let active = sink(config.clone());
    let messages = batch(["order.placed"]);
    all_delivered(&active.publish(&messages).await);
    assert_eq!(consumer.drain(&queue).await, ids(&messages));
    // Once the queue exists, passive succeeds.
    config.declare = Declare::Passive;
    all_delivered(&sink(config.clone()).publish(&batch(["order.placed"])).await);
    config.declare = Declare::Active;
    config.exchange_type = sendoff_sink_rabbitmq::ExchangeType::Fanout;
    let outcomes = sink(config.clone()).publish(&batch(["order.placed"])).await;
    down(&outcomes[0], &["inequivalent", "other properties"]);
    // Exchanges from messages are declared when the first message needs them.
    config.exchange = "{topic}".parse().unwrap();
    config.queue = None;
    let named = name("named");
    let outcomes = sink(config).publish(&batch([&named])).await;
    permanent(&outcomes[0], &["312", &named]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_broker_would_not_take_is_refused_without_harm_to_others() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[]).await;
    let mut config = to_queues(&url);
    config.max_message_bytes = 1000;
    let sink = sink(config);
    let mut large = message(&queue);
    large.payload = vec![b'x'; 1001].into();
    let mut headers = message(&queue);
    headers.headers.insert("h", "x".repeat(200_000).as_str());
    let messages = [
        Arc::new(large),
        Arc::new(message(&queue)),
        Arc::new(headers),
        Arc::new(message(&queue)),
        Arc::new(message(&"t".repeat(256))),
    ];
    let outcomes = sink.publish(&messages).await;
    permanent(&outcomes[0], &["1001", "1000"]);
    permanent(&outcomes[2], &["frame_max"]);
    permanent(&outcomes[4], &["256", "255"]);
    all_delivered(&[outcomes[1].clone(), outcomes[3].clone()]);
    let large = |bytes: usize| {
        let mut large = message(&queue);
        large.payload = vec![b'x'; bytes].into();
        Arc::new(large)
    };
    // Larger than a frame, and than the limit of unconfirmed bytes.
    let messages = [large(300_000), large(9 << 20), large(300_000)];
    all_delivered(&broker::sink(to_queues(&url)).publish(&messages).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_under_way_at_once_keep_their_outcomes_apart() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[]).await;
    let sink = Arc::new(sink(to_queues(&url)));
    let tasks = (0..8).map(|number| {
        let (sink, queue) = (Arc::clone(&sink), queue.clone());
        tokio::spawn(async move {
            for _ in 0..10 {
                let good = number % 2 == 0;
                let topic = if good { queue.clone() } else { name("nowhere") };
                let messages = batch(vec![topic; 20]);
                for outcome in sink.publish(&messages).await {
                    match good {
                        true => assert_eq!(outcome, Outcome::Delivered),
                        false => permanent(&outcome, &["312"]),
                    }
                }
            }
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(consumer.drain(&queue).await.len(), 4 * 10 * 20);
    sink.close().await;
    down(&sink.publish(&batch([&queue])).await[0], &["stopping"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_dropped_does_not_disturb_the_next() {
    let url = RabbitMq::shared().url().to_owned();
    let consumer = Consumer::connect(&url).await;
    let queue = consumer.queue(&[]).await;
    let sink = sink(to_queues(&url));
    for micros in (0..4000).step_by(200) {
        let dropped = batch(vec![name("nowhere"); 300]);
        let _ = tokio::time::timeout(Duration::from_micros(micros), sink.publish(&dropped)).await;
        let messages = batch(vec![&queue; 50]);
        all_delivered(&sink.publish(&messages).await);
        assert_eq!(
            consumer.drain(&queue).await,
            ids(&messages),
            "dropped after {micros} µs"
        );
    }
}
