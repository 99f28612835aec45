//! Cases: contents stay what they are.

use sendoff::{ErrorKind, Headers, Message, Outbox};

use super::EmitHarness;
use super::rows::{hex, rows};
use super::setup::{message, nowhere};

/// Bytes come back as they were, from each of the statements.
pub async fn payloads_stay_byte_identical<H: EmitHarness>(harness: &H) {
    let corpus: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0],
        b"a\0b".to_vec(),
        vec![0xff, 0xfe, 0x80],
        br#"{"lone":"\ud800","nul":"\u0000","escaped":"\\x41"}"#.to_vec(),
        b"{ \"spaces\" : 1.0 , \"b\":1, \"b\":2 }\r\n".to_vec(),
        br"\x00".to_vec(),
        (0..=255).collect(),
        (0..1 << 20).map(|at: usize| at.to_le_bytes()[at % 3]).collect(),
    ];
    let messages = || corpus.iter().map(|payload| Message::bytes("t", "x/y", payload.clone()));
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    for message in messages() {
        let _ = harness.emit(&outbox, &mut tx, message).await.unwrap();
    }
    let _ = harness.emit_many(&outbox, &mut tx, messages().collect()).await.unwrap();
    let once = messages()
        .enumerate()
        .map(|(number, message)| message.idempotency_key(number));
    let _ = harness.emit_many(&outbox, &mut tx, once.collect()).await.unwrap();
    harness.commit(tx).await;
    let rows = rows(harness).await;
    assert_eq!(rows.len(), corpus.len() * 3);
    for (row, payload) in rows.iter().zip(corpus.iter().cycle()) {
        assert!(row["payload"] == hex(payload), "{} bytes changed", payload.len());
    }
}

/// Headers and names are text, even if it looks like NULL, like an array, or like SQL.
pub async fn text_survives_whatever_it_looks_like<H: EmitHarness>(harness: &H) {
    let texts = [
        "NULL",
        "null",
        "{}",
        "{a,b}",
        "a,b",
        "\"",
        "\\",
        "\\\"",
        "'; --",
        " ",
        "$1",
        "?1",
        "\n\t\u{1}",
        "ß😀",
    ];
    let headers = Headers::from_iter(texts.iter().map(|text| (*text, *text)));
    let with = |text: &str| message(text).key(text).headers(headers.clone());
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    for text in texts {
        let _ = harness.emit(&outbox, &mut tx, with(text)).await.unwrap();
    }
    let _ = harness
        .emit_many(&outbox, &mut tx, texts.map(with).to_vec())
        .await
        .unwrap();
    let once = texts.map(|text| with(text).idempotency_key(text));
    let _ = harness.emit_many(&outbox, &mut tx, once.to_vec()).await.unwrap();
    harness.commit(tx).await;
    let rows = rows(harness).await;
    assert_eq!(rows.len(), texts.len() * 3);
    for (number, (row, text)) in rows.iter().zip(texts.iter().cycle()).enumerate() {
        assert_eq!((row["topic"].as_str(), row["key"].as_str()), (Some(*text), Some(*text)));
        let idempotency_key = (number >= texts.len() * 2).then_some(*text);
        assert_eq!(row["idempotency_key"].as_str(), idempotency_key);
        let stored = row["headers"].as_object().unwrap().iter();
        let stored: Headers = stored.map(|(name, value)| (name, value.as_str().unwrap())).collect();
        assert_eq!(stored, headers);
    }
}

/// One byte too many is refused by name, before anything is sent.
pub async fn a_payload_above_the_limit_never_reaches_the_database<H: EmitHarness>(harness: &H) {
    // There are no such tables: a statement that was sent would fail otherwise.
    let outbox = Outbox::builder().names(nowhere()).max_payload_bytes(10).build();
    let mut tx = harness.begin().await;
    let large = Message::bytes("t", "x/y", vec![0; 11]);
    let error = harness.emit(&outbox, &mut tx, large.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = harness
        .emit_many(&outbox, &mut tx, vec![message("t"), large])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    harness.rollback(tx).await;
}
