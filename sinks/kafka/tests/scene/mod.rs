//! Messages to publish, and a consumer that reads them.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, Message as _, OwnedMessage};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_sink_kafka::KafkaSink;
use sendoff_testkit::outgoing;

pub(crate) const PARTITIONS: i32 = 8;

pub(crate) fn message(topic: &str, key: Option<&str>, payload: impl Into<Vec<u8>>) -> Outgoing {
    Outgoing {
        key: key.map(Into::into),
        ..outgoing(topic, payload.into())
    }
}

pub(crate) fn batch(size: usize) -> Vec<Arc<Outgoing>> {
    let one = |number: usize| {
        Arc::new(message(
            "orders",
            Some(&format!("k{}", number % 20)),
            number.to_string(),
        ))
    };
    (0..size).map(one).collect()
}

pub(crate) async fn delivers(sink: &KafkaSink, batch: &[Arc<Outgoing>]) {
    assert_eq!(sink.publish(batch).await, vec![Outcome::Delivered; batch.len()]);
}

pub(crate) fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Delivered => "",
        Outcome::Temporary(reason) | Outcome::Permanent(reason) => reason.text(),
        Outcome::Unknown(reason) | Outcome::SinkDown(reason) | Outcome::NotYet(reason) => reason.text(),
    }
}

/// Creates a topic.
pub(crate) async fn create(servers: &str, topic: &str) {
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", servers);
    let admin: AdminClient<DefaultClientContext> = settings.create().unwrap();
    let topics = [NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1))];
    let created = admin.create_topics(&topics, &AdminOptions::new()).await.unwrap();
    assert_eq!(created, [Ok(topic.to_owned())]);
}

/// Reads exactly this many records of the topic `orders`, from its beginning.
pub(crate) async fn stored(servers: &str, count: usize) -> Vec<OwnedMessage> {
    let records = read(servers, Duration::from_millis(500), move |records| {
        records.len() >= count
    })
    .await;
    assert_eq!(records.len(), count);
    records
}

/// Reads records of the topic `orders` from its beginning until `is_enough`, and those that follow soon.
pub(crate) async fn read(
    servers: &str,
    soon: Duration,
    is_enough: impl Fn(&[OwnedMessage]) -> bool + Send + 'static,
) -> Vec<OwnedMessage> {
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", servers).set("group.id", "reader");
    let reading = tokio::task::spawn_blocking(move || {
        let consumer: BaseConsumer = settings.create().unwrap();
        let mut all = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            all.add_partition_offset("orders", partition, Offset::Beginning)
                .unwrap();
        }
        consumer.assign(&all).unwrap();
        let mut records = Vec::new();
        let begin = std::time::Instant::now();
        while !is_enough(&records) && begin.elapsed() < Duration::from_secs(30) {
            if let Some(record) = consumer.poll(Duration::from_millis(200)) {
                records.push(record.unwrap().detach());
            }
        }
        while let Some(more) = consumer.poll(soon) {
            records.push(more.unwrap().detach());
        }
        records
    });
    reading.await.unwrap()
}

/// The hash with which Java's client selects a partition.
fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ u32::try_from(key.len()).unwrap();
    let mut chunks = key.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = u32::from_le_bytes(chunk.try_into().unwrap()).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    for (at, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * at);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

/// Publishes messages of all kinds to the empty topic `orders`, and checks the stored records.
pub(crate) async fn stores_all_that_messages_have(sink: &KafkaSink, servers: &str) {
    sink.check().await.unwrap();
    let mut messages = batch(300);
    let mut full = message("orders", Some("customer-7"), b"\0\xff binary".to_vec());
    full.content_type = Some("application/octet-stream".into());
    full.headers.insert("traceparent", "00-ab");
    full.headers.insert("note", "one\r\ntwo");
    messages.push(Arc::new(full));
    messages.push(Arc::new(message("orders", None, "")));
    delivers(sink, &messages).await;
    let records = stored(servers, messages.len()).await;
    let header = |record: &OwnedMessage, name: &str| {
        let headers = record.headers().unwrap();
        let found = headers.iter().find(|header| header.key == name);
        found.map(|header| String::from_utf8(header.value.unwrap().to_vec()).unwrap())
    };
    for message in &messages {
        let id = Some(message.id.to_string());
        let record = records
            .iter()
            .find(|record| header(record, "sendoff-id") == id)
            .expect("every message is stored");
        assert_eq!(record.payload().unwrap_or_default(), &message.payload[..]);
        assert_eq!(record.key(), message.key.as_deref().map(str::as_bytes));
        if let Some(key) = &message.key {
            let partition = (murmur2(key.as_bytes()) & 0x7fff_ffff) % u32::try_from(PARTITIONS).unwrap();
            assert_eq!(record.partition(), i32::try_from(partition).unwrap(), "{key}");
        }
    }
    let full = records
        .iter()
        .find(|record| record.key() == Some(b"customer-7"))
        .unwrap();
    assert_eq!(
        header(full, "content-type").as_deref(),
        Some("application/octet-stream")
    );
    assert_eq!(header(full, "traceparent").as_deref(), Some("00-ab"));
    assert_eq!(header(full, "note").as_deref(), Some("one\r\ntwo"));
    assert_eq!(header(full, "sendoff-topic").as_deref(), Some("orders"));
    for partition in 0..PARTITIONS {
        let of = records
            .iter()
            .filter(|record| record.partition() == partition && record.key() != Some(b"customer-7"));
        let numbers: Vec<u32> = of
            .filter_map(|record| std::str::from_utf8(record.payload()?).ok()?.parse().ok())
            .collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}
