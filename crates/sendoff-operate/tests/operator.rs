//! The service over a store in memory.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::store::{
    Command, Direction, EndedAt, Filter, ListTable, Looked, LookedEnded, OperateStore, Status, Stored, Summary,
};
use sendoff::{ErrorKind, Result, Uuid};
use sendoff_operate::{ListBy, ListOrder, ListRequest, MOST_ROWS, Operator};
use serde_json::{Value, json};

/// Fits by status, topic and id, which is what these tests ask for.
#[derive(Default)]
struct Memory {
    rows: Mutex<Vec<Stored>>,
    retries: Mutex<Vec<(Filter, String)>>,
}

fn fits(filter: &Filter, row: &Stored) -> bool {
    filter.status.is_none_or(|status| row.status == status)
        && filter.topic.as_ref().is_none_or(|topic| row.topic == *topic)
        && (filter.ids.is_empty() || row.id.is_some_and(|id| filter.ids.contains(&id)))
}

#[async_trait]
impl OperateStore for Memory {
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        let rows = self.rows.lock().unwrap();
        let numbers = rows.iter().filter(|row| table.has(row)).map(|row| row.seq);
        Ok(match direction {
            Direction::NewestFirst => numbers.filter(|seq| *seq <= from).max(),
            Direction::OldestFirst => numbers.filter(|seq| *seq >= from).min(),
        })
    }

    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        let rows = self.rows.lock().unwrap();
        let rows = rows.iter().filter(|row| table.has(row)).cloned();
        Ok(Looked::among(rows, &numbers, |row| filter.fits(row), direction, limit))
    }

    async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        most: usize,
        limit: usize,
    ) -> Result<LookedEnded> {
        let rows = self.rows.lock().unwrap();
        let rows = rows.iter().filter(|row| table.has(row)).cloned();
        Ok(LookedEnded::among(
            rows,
            from,
            |row| filter.fits(row),
            direction,
            most,
            limit,
        ))
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let rows = self.rows.lock().unwrap();
        Ok(rows.iter().filter(|row| row.id == Some(id)).cloned().collect())
    }

    async fn summary(&self) -> Result<Summary> {
        Ok(Summary {
            ready: 1,
            waiting: 2,
            failed: 1,
            dead: 3,
            delivered: 4,
            oldest_ready: Some(Duration::from_millis(1500)),
            oldest_pending: Some(Duration::from_secs(3)),
        })
    }

    async fn now(&self) -> Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH)
    }

    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        assert_eq!(
            until,
            Some(SystemTime::UNIX_EPOCH),
            "what dies from now on is left alone"
        );
        self.retries
            .lock()
            .unwrap()
            .push((filter.clone(), command.who().to_owned()));
        let mut retried = 0;
        for row in self.rows.lock().unwrap().iter_mut() {
            if row.status == Status::Dead && fits(filter, row) && retried < limit as u64 {
                (row.status, row.attempts) = (Status::Pending, 0);
                retried += 1;
            }
        }
        Ok(retried)
    }
}

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

fn request(filter: Filter, limit: usize) -> ListRequest {
    ListRequest {
        filter: filter.into(),
        limit,
        ..ListRequest::default()
    }
}

/// All pages of a list: the ids of each.
async fn pages(operator: &Operator, mut request: ListRequest) -> Vec<Vec<u128>> {
    let mut pages = Vec::new();
    loop {
        let page = operator.list(&request).await.unwrap();
        pages.push(page.items.iter().map(|item| item.id.unwrap().as_u128()).collect());
        request.after = page.next;
        if request.after.is_none() {
            return pages;
        }
        assert!(pages.len() < 100, "pages without end: {pages:?}");
    }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_list_is_newest_first_or_oldest_first_whatever_the_table() {
    let status = [Status::Pending, Status::Dead, Status::Delivered];
    let (operator, _) = operator((1..=7).map(|id| stored(id, "t", "", status[id as usize % 3])));
    let mut request = request(Filter::default(), 3);
    assert_eq!(
        pages(&operator, request.clone()).await,
        [vec![7, 6, 5], vec![4, 3, 2], vec![1]]
    );
    request.order.oldest_first = true;
    assert_eq!(pages(&operator, request).await, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
}

#[tokio::test]
async fn a_page_keeps_the_deliveries_of_a_message_together() {
    let rows = [(1, ""), (2, "a"), (2, "b"), (2, "c"), (3, "a"), (3, "b")];
    let (operator, _) = operator(rows.map(|(id, sink)| stored(id, "t", sink, Status::Dead)));
    let ask = |limit| request(Filter::default(), limit);
    assert_eq!(pages(&operator, ask(4)).await, [vec![3, 3], vec![2, 2, 2, 1]]);
    assert_eq!(
        pages(&operator, ask(1)).await,
        [vec![3, 3], vec![2, 2, 2], vec![1]],
        "all of a message are on one page, even if they are more than asked for"
    );
}

#[tokio::test]
async fn pages_are_stable_while_rows_come_and_go() {
    let (operator, store) = operator((1..=6).map(|id| stored(id, "t", "", Status::Pending)));
    let mut request = request(Filter::default(), 2);
    let first = operator.list(&request).await.unwrap();
    request.after = first.next;
    {
        let mut rows = store.rows.lock().unwrap();
        rows.retain(|row| row.seq != 4);
        rows.push(stored(7, "t", "", Status::Pending));
        for row in rows.iter_mut().filter(|row| row.seq == 3) {
            row.status = Status::Dead;
        }
    }
    assert_eq!(pages(&operator, request).await, [vec![3, 2], vec![1]]);
}

#[tokio::test]
async fn a_list_by_end_has_what_ended() {
    let ended = |id: u128, status, seconds| Stored {
        ended_at: Some(at(seconds)),
        ..stored(id, "t", "", status)
    };
    let rows = [
        ended(1, Status::Dead, 50),
        ended(2, Status::Delivered, 40),
        ended(3, Status::Dead, 30),
        ended(4, Status::Dead, 30),
        stored(5, "t", "", Status::Pending),
    ];
    let (operator, _) = operator(rows);
    let mut request = request(Filter::default(), 3);
    request.order = ListOrder {
        by: ListBy::Ended,
        oldest_first: false,
    };
    assert_eq!(pages(&operator, request.clone()).await, [vec![1, 2, 4], vec![3]]);
    request.order.oldest_first = true;
    assert_eq!(pages(&operator, request.clone()).await, [vec![3, 4, 2], vec![1]]);
    request.filter = Filter {
        died_from: Some(at(31)),
        ..Filter::default()
    }
    .into();
    assert_eq!(pages(&operator, request.clone()).await, [vec![1]]);
    request.filter = Filter {
        status: Some(Status::Retry),
        ..Filter::default()
    }
    .into();
    assert_eq!(operator.list(&request).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_list_with_a_time_of_creation_starts_near_it() {
    let hour = 3600;
    let rows = (1..=3000_u64).map(|id| Stored {
        created_at: at(id * hour),
        ..stored(u128::from(id), "t", "", Status::Pending)
    });
    let (operator, _) = operator(rows);
    for oldest_first in [false, true] {
        let mut request = request(
            Filter {
                created_from: Some(at(1000 * hour)),
                created_until: Some(at(1003 * hour)),
                ..Filter::default()
            },
            10,
        );
        request.order.oldest_first = oldest_first;
        let page = operator.list(&request).await.unwrap();
        let mut ids: Vec<u128> = page.items.iter().map(|item| item.id.unwrap().as_u128()).collect();
        ids.sort_unstable();
        assert_eq!((ids, page.next), (vec![1000, 1001, 1002], None));
        assert!(page.scanned.unwrap() < 2500, "{:?}", page.scanned);
    }
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let (operator, _) = operator((1..=3).map(|id| stored(id, "t", "", Status::Pending)));
    let page = operator.list(&request(Filter::default(), 1)).await.unwrap();
    let topic = Filter {
        topic: Some("t".into()),
        ..Filter::default()
    };
    let mut other = request(topic, 1);
    other.after = page.next.clone();
    let error = operator.list(&other).await.unwrap_err();
    assert!(error.to_string().contains("another filter"), "{error}");
    let mut turned = request(Filter::default(), 1);
    turned.order.oldest_first = true;
    turned.after = page.next;
    let error = operator.list(&turned).await.unwrap_err();
    assert!(error.to_string().contains("another order"), "{error}");
    turned.after = Some("7".to_owned());
    assert_eq!(operator.list(&turned).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn ids_are_found_without_looking_at_others() {
    let (operator, _) = operator((1..=9).map(|id| stored(id, "t", "", Status::Pending)));
    let filter = Filter {
        ids: [3, 8, 99, 5].map(Uuid::from_u128).to_vec(),
        ..Filter::default()
    };
    let page = operator.list(&request(filter.clone(), 10)).await.unwrap();
    assert_eq!(page.scanned, Some(3));
    assert_eq!(pages(&operator, request(filter, 2)).await, [vec![8, 5], vec![3]]);
}

#[tokio::test]
async fn payloads_and_limits_of_a_list_are_checked() {
    let (operator, _) = operator([stored(1, "t", "", Status::Pending)]);
    let mut request = request(Filter::default(), 1);
    assert_eq!(operator.list(&request).await.unwrap().items[0].payload, None);
    request.payload = true;
    assert!(operator.list(&request).await.unwrap().items[0].payload.is_some());
    for limit in [0, MOST_ROWS + 1] {
        request.limit = limit;
        assert_eq!(operator.list(&request).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let count = operator.count_some(&Filter::default()).await.unwrap();
    assert_eq!((count.count, count.capped), (1, false));
}

#[tokio::test]
async fn dead_letters_are_listed_alone() {
    let rows = [
        stored(1, "a", "", Status::Dead),
        stored(2, "a", "", Status::Pending),
        stored(3, "b", "", Status::Dead),
    ];
    let (operator, _) = operator(rows);
    let of = |status, topic: Option<&str>| Filter {
        status,
        topic: topic.map(Into::into),
        ..Filter::default()
    };
    for (filter, count) in [
        (of(None, None), 2),
        (of(Some(Status::Dead), None), 2),
        (of(None, Some("b")), 1),
    ] {
        let page = operator.dead_list(&request(filter, 10)).await.unwrap();
        assert_eq!(page.items.len(), count);
    }
    let error = operator
        .dead_list(&request(of(Some(Status::Retry), None), 10))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
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

fn failed(id: u128, sink: &str, status: Status, error: &str) -> Stored {
    Stored {
        last_error: Some(error.to_owned()),
        detail: Some(if status == Status::Dead { "permanent" } else { "retry" }.to_owned()),
        ended_at: (status == Status::Dead).then(|| at(u64::try_from(id).unwrap())),
        ..stored(id, "t", sink, status)
    }
}

fn failures() -> Vec<Stored> {
    vec![
        failed(1, "shop", Status::Dead, "no queue 'a' at 10.0.0.1:5672"),
        failed(2, "shop", Status::Dead, "no queue 'b' at 10.0.0.2:5672"),
        failed(3, "shop", Status::Dead, "refused"),
        failed(4, "audit", Status::Dead, "no queue 'a' at 10.0.0.1:5672"),
        failed(5, "shop", Status::Retry, "timed out after 30s"),
        stored(6, "t", "", Status::Pending),
    ]
}

#[tokio::test]
async fn failures_are_grouped_by_sink_reason_and_error() {
    let (operator, _) = operator(failures());
    let found = operator.failures(&Filter::default()).await.unwrap();
    let groups: Vec<_> = found
        .items
        .iter()
        .map(|group| {
            (
                group.sink.as_deref().unwrap(),
                group.reason.as_str(),
                group.error.as_str(),
                group.count,
            )
        })
        .collect();
    assert_eq!(groups[0], ("shop", "permanent", "no queue <text> at <address>", 2));
    assert_eq!(groups.len(), 4, "{groups:?}");
    assert!(groups.contains(&("shop", "retry", "timed out after <n>s", 1)));
    let first = &found.items[0];
    assert_eq!(
        (first.first_seen.as_str(), first.last_seen.as_str()),
        ("1970-01-01T00:00:01.000000Z", "1970-01-01T00:00:02.000000Z")
    );
    assert_eq!((first.example, first.capped), (Some(Uuid::from_u128(2)), false));
    let of_audit = Filter {
        sink: Some("audit".to_owned()),
        ..Filter::default()
    };
    assert_eq!(operator.failures(&of_audit).await.unwrap().items.len(), 1);
    let pending = Filter {
        status: Some(Status::Pending),
        ..Filter::default()
    };
    assert_eq!(
        operator.failures(&pending).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[tokio::test]
async fn a_command_on_a_group_changes_the_group_and_nothing_else() {
    let (operator, store) = operator(failures());
    let found = operator.failures(&Filter::default()).await.unwrap();
    let group = found.items[0].group.clone();
    let retry = found
        .items
        .iter()
        .find(|group| group.reason == "retry")
        .unwrap()
        .group
        .clone();
    let selected = operator.selected(Filter::default(), Some(&group), false).await.unwrap();
    assert_eq!(selected.dead_count().await.unwrap(), 2);
    assert_eq!(selected.dead_retry(&mut |_| {}).await.unwrap(), 2);
    let dead: Vec<i64> = {
        let rows = store.rows.lock().unwrap();
        rows.iter()
            .filter(|row| row.status == Status::Dead)
            .map(|row| row.seq)
            .collect()
    };
    assert_eq!(dead, [3, 4]);
    {
        let retries = store.retries.lock().unwrap();
        let (filter, _) = &retries[0];
        assert_eq!(filter.ids, [1, 2].map(Uuid::from_u128));
        assert_eq!(
            (filter.group.as_deref(), filter.sink.as_deref()),
            (Some(group.as_str()), Some("shop"))
        );
    }
    let gone = operator.selected(Filter::default(), Some(&group), false).await;
    assert_eq!(gone.err().unwrap().kind(), ErrorKind::NotFound);
    let waiting = operator.selected(Filter::default(), Some(&retry), false).await.unwrap();
    let error = waiting.dead_count().await.unwrap_err();
    assert!(error.to_string().contains("sendoff retry --group"), "{error}");
}
