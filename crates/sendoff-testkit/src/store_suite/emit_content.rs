//! What was emitted comes out again, byte for byte.

use std::time::Duration;

use sendoff::store::{Command, DeadReason, Outgoing, Status};
use sendoff::{ErrorKind, Event, Headers, Message, Uuid};

use super::manual_relay::{dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, plain};

cases![
    every_field_comes_out_as_it_went_in,
    a_message_without_anything_has_nothing,
    payloads_are_byte_identical,
    payloads_are_byte_identical_when_many_are_emitted_at_once,
    a_payload_may_be_as_large_as_the_limit_and_no_larger,
    headers_hold_any_text,
    keys_hold_any_text_and_stay_apart,
    a_key_that_is_too_long_is_refused_when_it_is_written needs Sql,
    what_is_too_large_is_refused_by_its_name_when_it_is_written needs Sql,
    payloads_survive_a_retry_and_a_dead_letter,
];

/// The limit of an outbox that was not told another.
const LARGEST_PAYLOAD: usize = 1 << 20;

/// What databases, JSON and text encodings trip over.
fn payloads() -> Vec<Vec<u8>> {
    vec![
        vec![],
        vec![0],
        b"\0\0\0".to_vec(),
        b"with\0NUL".to_vec(),
        br#"{"lone": "\ud800", "nul": "\u0000"}"#.to_vec(),
        vec![0xed, 0xa0, 0x80],
        vec![0xff, 0xfe, 0xc0, 0x80, 0xf5],
        b"\xef\xbb\xbf{\"bom\": true}".to_vec(),
        (0..=255).collect(),
        br#"{"b": 1,  "a": 1.0, "b": 2, "big": 12345678901234567890123}"#.to_vec(),
        b"'; DROP TABLE outbox_message; --".to_vec(),
        b"\\x00 \\000 E'\\n' $1 ?1 %s".to_vec(),
        "žluťoučký 🦀 \u{202e}".as_bytes().to_vec(),
        b"\r\n\n\r\t \x0b".to_vec(),
        b"[{\"already\": \"json\"}]".to_vec(),
        vec![b'x'; 100_000],
    ]
}

/// Text that a message may hold: everything but NUL.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "plain",
        " leading and trailing ",
        "O'Brien",
        "\"double\"",
        "back\\slash",
        "new\nline\r\n",
        "tab\t",
        "%_*?[a]{b}",
        "$1 ?1 :name @name",
        "NULL",
        "null",
        "0",
        "{}",
        "Straße",
        "STRASSE",
        "case",
        "CASE",
        "\u{e9}",
        "e\u{301}",
        "🦀🦀",
        "\u{202e}right to left",
        "\u{1}\u{7f}\u{80}",
        "\u{feff}bom",
        "\u{10ffff}",
        "a,b;c|d",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("k".repeat(1024));
    texts
}

async fn read_back(scene: &Scene, messages: Vec<Message>) -> sendoff::Result<Vec<Outgoing>> {
    let ids: Vec<Uuid> = messages.iter().map(Message::id).collect();
    scene.emit(messages).await?;
    let mut read = scene.relay().await?.read_messages(ids.len()).await;
    read.sort_by_key(|outgoing| ids.iter().position(|id| *id == outgoing.id));
    assert_eq!(read.iter().map(|outgoing| outgoing.id).collect::<Vec<_>>(), ids);
    Ok(read)
}

async fn every_field_comes_out_as_it_went_in(scene: Scene) -> CaseResult {
    let before = scene.now().await?;
    let expires = before + Duration::from_secs(86_400);
    let event: Message = Event::new("order", "4-2", "order.placed")
        .payload(&serde_json::json!({"total": "12.50"}))?
        .schema_version(i32::MAX)
        .header("traceparent", "00-ab")
        .into();
    let event = event.priority(i16::MIN).max_attempts(32_767).expires_at(expires);
    let raw = Message::bytes("blob", "application/octet-stream", vec![1, 2]).priority(i16::MAX);
    scene.emit([event.clone(), raw.clone()]).await?;
    let read = scene.relay().await?.read_messages(2).await;
    let find = |id: Uuid| read.iter().find(|outgoing| outgoing.id == id).expect("it is read");
    let outgoing = find(event.id());
    assert_eq!(outgoing.topic, "order.placed");
    assert_eq!(outgoing.payload, event.payload());
    assert_eq!(
        (outgoing.content_type.as_deref(), outgoing.content_type()),
        (None, "application/json")
    );
    assert_eq!(&outgoing.headers, event.headers_ref());
    assert_eq!(outgoing.key.as_deref(), Some("order:4-2"));
    assert_eq!(outgoing.aggregate_type.as_deref(), Some("order"));
    assert_eq!(outgoing.aggregate_id.as_deref(), Some("4-2"));
    assert_eq!(outgoing.schema_version, Some(i32::MAX));
    assert_eq!(outgoing.idempotency_key.as_deref(), Some("order:4-2"));
    assert_eq!(outgoing.priority, i16::MIN);
    assert_eq!((outgoing.max_attempts, outgoing.attempts), (Some(32_767), 0));
    let read_expires = outgoing.expires_at.expect("it expires");
    let off = read_expires
        .duration_since(expires)
        .unwrap_or_else(|before| before.duration());
    assert!(off < Duration::from_micros(2), "{off:?}");
    assert!(outgoing.created_at >= before && outgoing.created_at < before + Duration::from_secs(60));
    let outgoing = find(raw.id());
    assert_eq!(outgoing.content_type(), "application/octet-stream");
    assert_eq!((outgoing.priority, &outgoing.payload[..]), (i16::MAX, &[1, 2][..]));
    Ok(())
}

async fn a_message_without_anything_has_nothing(scene: Scene) -> CaseResult {
    let read = read_back(&scene, vec![plain("t")]).await?;
    let outgoing = &read[0];
    assert_eq!(outgoing.headers, Headers::new());
    let texts = [
        &outgoing.key,
        &outgoing.aggregate_type,
        &outgoing.aggregate_id,
        &outgoing.idempotency_key,
    ];
    assert!(texts.into_iter().all(Option::is_none), "{outgoing:#?}");
    assert_eq!((outgoing.schema_version, outgoing.max_attempts), (None, None));
    assert_eq!((outgoing.expires_at, outgoing.priority), (None, 0));
    Ok(())
}

async fn payloads_are_byte_identical(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    for payload in payloads() {
        // One by one: the statement for one message is another than the one for many.
        scene.emit([Message::bytes("t", "x/y", payload.clone())]).await?;
        let read = relay.read_messages(1).await;
        assert_eq!(read[0].payload, payload);
        relay.deliver(&read).await?;
    }
    Ok(())
}

async fn payloads_are_byte_identical_when_many_are_emitted_at_once(scene: Scene) -> CaseResult {
    let messages = |once: bool| {
        payloads().into_iter().enumerate().map(move |(n, payload)| {
            let message = Message::bytes("t", "x/y", payload);
            if once { message.idempotency_key(n) } else { message }
        })
    };
    let read = read_back(&scene, messages(false).chain(messages(true)).collect()).await?;
    let expected = payloads().into_iter().chain(payloads());
    for (outgoing, payload) in read.iter().zip(expected) {
        assert_eq!(outgoing.payload, payload);
    }
    Ok(())
}

async fn a_payload_may_be_as_large_as_the_limit_and_no_larger(scene: Scene) -> CaseResult {
    let sized = |size: usize| {
        let bytes: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
        Message::bytes("t", "x/y", bytes)
    };
    let mut tx = scene.subject.emit.begin().await?;
    let refused = tx
        .emit(&[sized(LARGEST_PAYLOAD + 1)])
        .await
        .expect_err("it is too large");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    tx.rollback().await?;
    let fitting = vec![sized(LARGEST_PAYLOAD - 1), sized(LARGEST_PAYLOAD)];
    let read = read_back(&scene, fitting.clone()).await?;
    for (outgoing, message) in read.iter().zip(&fitting) {
        assert!(
            outgoing.payload == message.payload(),
            "{} bytes",
            message.payload().len()
        );
    }
    Ok(())
}

async fn headers_hold_any_text(scene: Scene) -> CaseResult {
    let pairs = texts()
        .into_iter()
        .flat_map(|text| [(text.clone(), text.clone()), (format!("{text}-"), String::new())]);
    let headers: Headers = pairs.filter(|(name, _)| name.len() <= 1024).collect();
    let read = read_back(&scene, vec![plain("t").headers(headers.clone()), plain("t")]).await?;
    assert_eq!(read[0].headers, headers);
    assert_eq!(read[1].headers, Headers::new());
    Ok(())
}

async fn keys_hold_any_text_and_stay_apart(scene: Scene) -> CaseResult {
    let keyed = |text: &String| {
        let event = Event::new(text.as_str(), text, text.as_str());
        Message::from(event.key(text).idempotency_key(text))
    };
    // Each twice: the second is a duplicate of its own first and of no other.
    let texts = texts();
    let messages: Vec<Message> = texts.iter().map(keyed).collect();
    let again: Vec<Message> = texts.iter().map(keyed).collect();
    let read = read_back(&scene, messages.clone()).await?;
    for (outgoing, text) in read.iter().zip(&texts) {
        assert_eq!(outgoing.key.as_ref(), Some(text));
        assert_eq!(&outgoing.topic, text);
        assert_eq!(outgoing.aggregate_type.as_ref(), Some(text));
        assert_eq!(outgoing.aggregate_id.as_ref(), Some(text));
        assert_eq!(outgoing.idempotency_key.as_ref(), Some(text));
    }
    for (emitted, message) in scene.emit(again).await?.iter().zip(&messages) {
        assert!(emitted.is_duplicate());
        assert_eq!(emitted.id(), message.id());
    }
    Ok(())
}

async fn payloads_survive_a_retry_and_a_dead_letter(scene: Scene) -> CaseResult {
    let headers = Headers::from_iter([("quote", "\"'\\")]);
    let messages = payloads()
        .into_iter()
        .map(|payload| Message::bytes("t", "x/y", payload).headers(headers.clone()));
    let messages: Vec<Message> = messages.collect();
    scene.emit(messages.clone()).await?;
    let mut relay = scene.relay().await?;
    let ready = relay.read_messages(messages.len()).await;
    relay.settle_as(&retry(Duration::ZERO), &ready).await?;
    let check = |read: &[Outgoing]| {
        for message in &messages {
            let outgoing = read
                .iter()
                .find(|outgoing| outgoing.id == message.id())
                .expect("it is read");
            assert_eq!((&outgoing.payload, &outgoing.headers), (message.payload(), &headers));
        }
    };
    let retried = relay.read_messages(messages.len()).await;
    check(&retried);
    relay.settle_as(&dead(DeadReason::Permanent, false), &retried).await?;
    for message in &messages {
        assert_eq!(scene.find_one(message.id()).await?.payload, message.payload().to_vec());
    }
    scene
        .subject
        .operate
        .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("suite"))
        .await?;
    check(&relay.read_messages(messages.len()).await);
    Ok(())
}

/// By hand it could be as long as the column takes; and then it would be too long for the tables behind.
async fn a_key_that_is_too_long_is_refused_when_it_is_written(scene: Scene) -> CaseResult {
    let insert = |key: &str| format!("INSERT INTO outbox_message (topic, payload, \"key\") VALUES ('t', 'x', '{key}')");
    let database = &scene.subject.database;
    for too_long in ["k".repeat(1025), "\u{1f511}".repeat(257), "k".repeat(3000)] {
        assert!(
            database.execute(&insert(&too_long)).await.is_err(),
            "{} bytes",
            too_long.len()
        );
    }
    let longest = ["k".repeat(1024), "\u{1f511}".repeat(256)];
    for key in &longest {
        assert_eq!(database.execute(&insert(key)).await?, 1);
    }
    // It waits, holds others up, and dies.
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(2).await {
        assert!(longest.contains(outgoing.key.as_ref().expect("it has one")));
        let deliveries = vec![
            sink("a", retry(Duration::from_secs(3600))),
            sink("b", dead(DeadReason::Permanent, true)),
        ];
        assert!(
            relay
                .settle(&[relay.settlement(&outgoing, deliveries)])
                .await?
                .lost
                .is_empty()
        );
    }
    assert_eq!(
        (scene.count(Status::Retry).await?, scene.count(Status::Dead).await?),
        (2, 2)
    );
    Ok(())
}

/// Whoever can insert could otherwise stop every relay with rows that no relay can hold.
async fn what_is_too_large_is_refused_by_its_name_when_it_is_written(scene: Scene) -> CaseResult {
    let database = &scene.subject.database;
    let headers = |count: usize, bytes: usize| {
        let names = (0..count).map(|n| format!("\"{n:03}\": \"\""));
        let json = format!("{{{}}}", names.collect::<Vec<_>>().join(", "));
        json.replacen(
            "\"\"",
            &format!("\"{}\"", "v".repeat(bytes.saturating_sub(json.len()))),
            1,
        )
    };
    let texts = [
        "topic",
        "content_type",
        "aggregate_type",
        "aggregate_id",
        "idempotency_key",
    ];
    let texts = texts.map(|column| (column, "x".repeat(1024), "x".repeat(1025)));
    let bytes = ("headers", headers(200, 65_536), headers(200, 65_537));
    let count = ("headers", headers(256, 0), headers(257, 0));
    // Idempotency keys are of a topic, whichever table it is.
    for (table, topic) in [("outbox_message", "m"), ("outbox_job", "i")] {
        for (column, largest, too_large) in texts.iter().chain([&bytes, &count]) {
            let insert = |value: &str| match *column {
                "topic" => format!("INSERT INTO {table} (topic, payload) VALUES ('{value}', '')"),
                _ => format!("INSERT INTO {table} (topic, payload, {column}) VALUES ('{topic}', '', '{value}')"),
            };
            let refused = database.execute(&insert(too_large)).await.map(drop);
            let error = format!("{:?}", refused.expect_err(column));
            let says_so = ["too large", "too long", "exceeds the limit"]
                .iter()
                .any(|words| error.contains(words));
            assert!(says_so, "{error}");
            assert!(error.contains(column), "{column}: {error}");
            assert_eq!(database.execute(&insert(largest)).await?, 1, "{column}");
        }
    }
    Ok(())
}
