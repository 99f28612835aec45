//! The service over a store in memory.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod failures;
mod list;
mod memory;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use sendoff::store::{Filter, Status, Stored};
use sendoff::{ErrorKind, Uuid};
use sendoff_operate::{ListBy, ListOrder, ListRequest, MOST_ROWS, Operator};
use serde_json::{Value, json};

use list::{at, request};
use memory::Memory;

fn stored(id: u128, topic: &str, sink: &str, status: Status) -> Stored {
    Stored {
        status,
        id: Some(Uuid::from_u128(id)),
        topic: topic.into(),
        sink: sink.into(),
        key: None,
        lane: 3,
        seq: id as i64,
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        content_type: None,
        headers: None,
        headers_cut: false,
        payload: b"{\"total\": 1}".to_vec(),
        payload_bytes: 12,
        priority: 0,
        attempts: 0,
        max_attempts: None,
        last_error: None,
        detail: None,
        history: None,
        created_at: SystemTime::UNIX_EPOCH,
        due_at: None,
        expires_at: None,
        ended_at: None,
    }
}

fn operator(rows: impl IntoIterator<Item = Stored>) -> (Operator, Arc<Memory>) {
    let store = Arc::new(Memory {
        rows: Mutex::new(rows.into_iter().collect()),
        ..Memory::default()
    });
    (Operator::new(store.clone(), "ann"), store)
}

fn json_of(view: &impl serde::Serialize) -> Value {
    serde_json::to_value(view).unwrap()
}

#[tokio::test]
async fn a_bare_message_has_every_field_in_its_json() {
    let (operator, _) = operator([stored(1, "order.placed", "", Status::Pending)]);
    let shown = operator.show(Uuid::from_u128(1)).await.unwrap();
    let sink = json!({
        "sink": null, "status": "pending", "detail": null, "attempts": 0, "last_error": null, "due_at": null,
        "ended_at": null, "history": [],
    });
    let message = json!({
        "id": "00000000-0000-0000-0000-000000000001", "status": "pending", "topic": "order.placed", "key": null,
        "aggregate_type": null, "aggregate_id": null, "schema_version": null, "idempotency_key": null,
        "priority": 0, "max_attempts": null, "lane": 3, "seq": 1, "created_at": "1970-01-01T00:00:00.000000Z",
        "expires_at": null, "headers": {}, "headers_cut": false, "content_type": "application/json", "payload_bytes": 12, "payload_cut": false,
        "payload": "{\"total\": 1}", "deliveries": [sink],
    });
    assert_eq!(json_of(&shown), message);
    let mut request = request(Filter::default(), 10);
    request.payload = true;
    let listed = operator.list(&request).await.unwrap();
    assert_eq!(
        json_of(&listed),
        json!({"items": [message], "next": null, "scanned": 1})
    );
}

#[tokio::test]
async fn a_message_is_shown_with_all_its_deliveries_and_the_status_of_the_worst() {
    let mut dead = stored(1, "t", "shop", Status::Dead);
    dead.detail = Some("exhausted".into());
    dead.attempts = 5;
    dead.last_error = Some("refused".into());
    dead.ended_at = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(60));
    dead.history = Some(r#"[{"at":"1970-01-01T00:00:30Z","sink":"shop","error":"refused"}]"#.into());
    let (operator, _) = operator([
        dead,
        stored(1, "t", "audit", Status::Delivered),
        stored(2, "t", "audit", Status::Retry),
    ]);
    let shown = json_of(&operator.show(Uuid::from_u128(1)).await.unwrap());
    assert_eq!(shown["status"], "dead");
    assert_eq!(
        (&shown["deliveries"][0]["sink"], &shown["deliveries"][0]["status"]),
        (&json!("audit"), &json!("delivered"))
    );
    assert_eq!(
        shown["deliveries"][1],
        json!({
            "sink": "shop", "status": "dead", "detail": "exhausted", "attempts": 5, "last_error": "refused",
            "due_at": null, "ended_at": "1970-01-01T00:01:00.000000Z",
            "history": [{"at": "1970-01-01T00:00:30Z", "sink": "shop", "error": "refused"}],
        })
    );
    let dead_shown = operator.dead_show(Uuid::from_u128(1)).await.unwrap();
    assert_eq!(dead_shown.deliveries.len(), 1);
    assert_eq!(dead_shown.deliveries[0].sink.as_deref(), Some("shop"));
}

#[tokio::test]
async fn what_is_not_there_is_told_with_a_reason() {
    let (operator, _) = operator([stored(1, "t", "audit", Status::Retry)]);
    let missing = operator.show(Uuid::from_u128(7)).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("retention"), "{missing}");
    let alive = operator.dead_show(Uuid::from_u128(1)).await.unwrap_err();
    assert_eq!(alive.kind(), ErrorKind::NotFound);
    assert!(alive.to_string().contains("its status is retry"), "{alive}");
}

#[tokio::test]
async fn payloads_are_text_where_they_are_and_base64_where_not() {
    let rows = [&b"\xff\0"[..], b"plain\ttext\r\n", b"esc\x1b[2J", b""]
        .into_iter()
        .enumerate()
        .map(|(at, payload)| {
            let mut row = stored(at as u128, "t", "", Status::Pending);
            row.payload = payload.to_vec();
            row.payload_bytes = payload.len() as u64;
            row
        });
    let (operator, _) = operator(rows);
    let mut request = request(Filter::default(), 10);
    (request.payload, request.order.oldest_first) = (true, true);
    let messages = operator.list(&request).await.unwrap().items;
    let payloads: Vec<_> = messages
        .iter()
        .map(|message| {
            (
                message.payload.as_deref(),
                message.payload_base64.as_deref(),
                message.payload_bytes,
            )
        })
        .collect();
    assert_eq!(
        payloads,
        [
            (None, Some("/wA="), 2),
            (Some("plain\ttext\r\n"), None, 12),
            (None, Some("ZXNjG1sySg=="), 7),
            (Some(""), None, 0)
        ]
    );
}

#[tokio::test]
async fn rows_that_another_program_spoilt_are_still_shown() {
    let mut row = stored(1, "t", "", Status::Dead);
    row.id = None;
    row.headers = Some("[1".into());
    row.history = Some("{}".into());
    let (operator, _) = operator([row]);
    let listed = json_of(&operator.dead_list(&request(Filter::default(), 10)).await.unwrap());
    let message = &listed["items"][0];
    assert_eq!((&message["id"], &message["headers"]), (&Value::Null, &json!("[1")));
    assert_eq!(
        message["deliveries"][0]["history"],
        json!([{"at": null, "sink": null, "error": "{}"}])
    );
}

#[tokio::test]
async fn dead_letters_come_back_by_filter_and_the_store_learns_who_asked() {
    let rows = [
        stored(1, "a", "", Status::Dead),
        stored(2, "a", "", Status::Retry),
        stored(3, "b", "", Status::Dead),
    ];
    let (operator, store) = operator(rows);
    let by_id = Filter {
        ids: vec![Uuid::from_u128(1)],
        status: Some(Status::Dead),
        ..Filter::default()
    };
    assert_eq!(
        json_of(&operator.dead_retry(&by_id, &mut |_| {}).await.unwrap()),
        json!({"retried": 1})
    );
    assert_eq!(operator.dead_retry(&by_id, &mut |_| {}).await.unwrap().retried, 0);
    assert_eq!(operator.dead_retry_all(&mut |_| {}).await.unwrap().retried, 1);
    let retries = store.retries.lock().unwrap();
    let (filter, who) = &retries[0];
    assert_eq!(
        (filter.ids.as_slice(), filter.status, who.as_str()),
        (&[Uuid::from_u128(1)][..], None, "ann")
    );
    assert_eq!(retries.len(), 3);
}

#[tokio::test]
async fn a_filter_that_names_nothing_brings_nothing_back() {
    let (operator, store) = operator([stored(1, "a", "", Status::Dead)]);
    for filter in [
        Filter::default(),
        Filter {
            status: Some(Status::Dead),
            ..Filter::default()
        },
        Filter {
            status: Some(Status::Delivered),
            topic: Some("a".into()),
            ..Filter::default()
        },
        Filter {
            topic: Some(String::new()),
            ..Filter::default()
        },
    ] {
        let error = operator.dead_retry(&filter, &mut |_| {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert!(store.retries.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_summary_counts_seconds() {
    let (operator, _) = operator([]);
    assert_eq!(
        json_of(&operator.summary().await.unwrap()),
        json!({
            "total": 10, "pending": 2, "ready": 1, "waiting": 2, "failed": 1, "dead": 3, "delivered": 4,
            "oldest_ready_seconds": 1.5, "oldest_pending_seconds": 3.0,
        })
    );
}

#[tokio::test]
async fn ages_count_back_from_the_clock_of_the_store() {
    let (operator, _) = operator([]);
    let written = sendoff_operate::parse_filter(["created_until=0s"]).unwrap();
    // The clock of this store stands still; the one of this host does not.
    let filter = operator.filter(&written).await.unwrap();
    assert_eq!(filter.created_until, Some(SystemTime::UNIX_EPOCH));
}
