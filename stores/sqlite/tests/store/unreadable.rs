use sendoff::store::{Command, DeadReason, OperateStore, RelayStore, Row, RowRef, Status, Verdict};

use crate::outbox::TestOutbox;

/// Rows that other programs might write: what is put into the table, and what is said about it.
const ODD: &[(&str, &str, &str)] = &[
    ("topic, payload", "'', 'x'", "the topic is empty"),
    (
        "topic, payload",
        "CAST(x'ff' AS TEXT), 'x'",
        "the column topic is not UTF-8",
    ),
    (
        "topic, payload",
        "'t', 7",
        "the column payload is neither bytes nor text",
    ),
    (
        "topic, payload",
        "'t', 1.5",
        "the column payload is neither bytes nor text",
    ),
    ("topic, payload, id", "'t', 'x', 'four'", "the id is not a UUID"),
    ("topic, payload, id", "'t', 'x', ''", "the id is not a UUID"),
    (
        "topic, payload, id",
        "'t', 'x', CAST(x'ff' AS TEXT)",
        "the column id is not UTF-8",
    ),
    (
        "topic, payload, headers",
        "'t', 'x', '['",
        "the headers are not a JSON object of strings",
    ),
    (
        "topic, payload, headers",
        "'t', 'x', '[]'",
        "the headers are not a JSON object of strings",
    ),
    (
        "topic, payload, headers",
        "'t', 'x', '{\"a\": 1}'",
        "the headers are not a JSON object of strings",
    ),
    (
        "topic, payload, headers",
        "'t', 'x', ''",
        "the headers are not a JSON object of strings",
    ),
    (
        "topic, payload, key",
        "'t', 'x', CAST(x'fffe' AS TEXT)",
        "the column key is not UTF-8",
    ),
    (
        "topic, payload, priority",
        "'t', 'x', 99999",
        "the column priority is out of range",
    ),
    (
        "topic, payload, priority",
        "'t', 'x', -99999",
        "the column priority is out of range",
    ),
    (
        "topic, payload, max_attempts",
        "'t', 'x', 0",
        "the column max_attempts is out of range",
    ),
    (
        "topic, payload, max_attempts",
        "'t', 'x', -1",
        "the column max_attempts is out of range",
    ),
    (
        "topic, payload, max_attempts",
        "'t', 'x', 99999",
        "the column max_attempts is out of range",
    ),
    (
        "topic, payload, schema_version",
        "'t', 'x', 9999999999",
        "the column schema_version is out of range",
    ),
    (
        "topic, payload, content_type",
        "'t', 'x', CAST(x'ff' AS TEXT)",
        "the column content_type is not UTF-8",
    ),
];

async fn settle_as_unreadable(outbox: &TestOutbox, rows: Vec<Row>, relay: &mut crate::outbox::TestRelay) {
    let verdict = |why: &str| Verdict::Dead {
        reason: DeadReason::Unreadable,
        error: why.to_owned(),
        charged: false,
        blocks: false,
    };
    let row_refs: Vec<(RowRef, String)> = rows
        .into_iter()
        .map(|row| match row {
            Row::Unreadable { row_ref, why } => (row_ref, why),
            other => panic!("readable: {other:?}"),
        })
        .collect();
    let settlements: Vec<_> = row_refs
        .iter()
        .map(|(row_ref, why)| relay.settlement_of(row_ref, None, &[("", verdict(why))]))
        .collect();
    assert!(relay.settle_all(&settlements).await.lost.is_empty());
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
}

#[tokio::test]
async fn every_odd_row_becomes_a_dead_letter_and_spoils_no_other() {
    let outbox = TestOutbox::new().await;
    outbox.run("INSERT INTO outbox_message (topic, payload) VALUES ('first', 'fine')");
    for (columns, values, _) in ODD {
        outbox.run(&format!("INSERT INTO outbox_message ({columns}) VALUES ({values})"));
    }
    outbox.run("INSERT INTO outbox_message (topic, payload) VALUES ('last', 'fine')");

    let mut relay = outbox.relay().await;
    let mut rows = relay.read().await;
    rows.sort_by_key(|row| row.row_ref().seq);
    let (first, last) = (rows.remove(0), rows.pop().unwrap());
    for row in [first, last] {
        let outgoing = crate::outbox::outgoing(row);
        assert_eq!(outgoing.payload, "fine");
        relay.settle(&outgoing, &[]).await;
    }
    for (row, (_, values, why)) in rows.iter().zip(ODD) {
        match row {
            Row::Unreadable { why: said, .. } => assert!(said.starts_with(why), "{values}: {said}"),
            other => panic!("{values} is readable: {other:?}"),
        }
    }
    settle_as_unreadable(&outbox, rows, &mut relay).await;
    assert_eq!(outbox.store.backlog().await.unwrap().dead, ODD.len() as u64);
    assert!(relay.read().await.is_empty());

    // They can be looked at, and retried as often as somebody likes: they come back as dead letters.
    let listing = outbox.store.list(&Default::default(), 100).await.unwrap();
    assert!(listing.messages.iter().all(|stored| stored.status == Status::Dead));
    assert_eq!(listing.messages.len(), ODD.len());
    assert_eq!(
        outbox
            .store
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("ops"))
            .await
            .unwrap(),
        ODD.len() as u64
    );
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    outbox.store.blocked_keys(&lanes).await.unwrap();
    let rows = relay.read().await;
    assert_eq!(rows.len(), ODD.len());
    settle_as_unreadable(&outbox, rows, &mut relay).await;
    assert_eq!(outbox.store.backlog().await.unwrap().dead, ODD.len() as u64);
}

#[tokio::test]
async fn a_dead_letter_is_the_row_as_it_was() {
    let outbox = TestOutbox::new().await;
    outbox.run(
        "INSERT INTO outbox_message (id, topic, payload, headers, priority, max_attempts, key)
         VALUES ('odd', 't', 7.25, '[', 123456, -4, 'k')",
    );
    let mut relay = outbox.relay().await;
    let rows = relay.read().await;
    settle_as_unreadable(&outbox, rows, &mut relay).await;
    let raw = "SELECT id || topic || payload || typeof(payload) || headers || priority || max_attempts || key || reason
               FROM outbox_dead";
    assert_eq!(outbox.ask::<String>(raw), "oddt7.25real[123456-4kunreadable");
}

#[tokio::test]
async fn values_of_the_wrong_type_are_refused_in_the_producers_transaction() {
    let outbox = TestOutbox::new().await;
    for (column, value) in [
        ("available_at", "'2027-01-01 00:00:00'"),
        ("expires_at", "'tomorrow'"),
        ("priority", "'high'"),
        ("priority", "NULL"),
        ("id", "x'00112233445566778899aabbccddeeff'"),
        ("headers", "x'7b7d'"),
        ("topic", "NULL"),
        ("created_at", "1.5"),
    ] {
        let sql = format!("INSERT INTO outbox_message (payload, topic, {column}) VALUES ('x', 't', {value})");
        let sql = if column == "topic" {
            sql.replace("topic, topic", "topic").replace("'t', ", "")
        } else {
            sql
        };
        let error = outbox.plain().execute_batch(&sql).unwrap_err().to_string();
        assert!(error.contains(&format!("outbox_message.{column}")), "{error}");
    }
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
}

#[tokio::test]
async fn plain_inserts_of_other_languages_are_messages() {
    let outbox = TestOutbox::new().await;
    outbox.run(
        "INSERT INTO outbox_message (topic, payload) VALUES ('json', '{\"n\": \"é\"}');
         INSERT INTO outbox_message (topic, payload) VALUES ('bytes', x'00ff');
         INSERT INTO outbox_message (topic, payload, id) VALUES ('hex', '', '0188D3B4000070008000000000000001');",
    );
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    assert_eq!(rows[0].payload, "{\"n\": \"é\"}");
    assert_eq!(rows[0].content_type(), "application/json");
    assert_eq!(
        (rows[0].id.get_version_num(), rows[0].id.get_variant()),
        (7, uuid::Variant::RFC4122)
    );
    let (seconds, _) = rows[0].id.get_timestamp().unwrap().to_unix();
    let created = rows[0]
        .created_at
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert!(seconds.abs_diff(created.as_secs()) <= 1);
    assert_ne!(rows[0].id, rows[1].id);
    assert_eq!(rows[1].payload[..], [0, 255]);
    assert_eq!(rows[2].id.to_string(), "0188d3b4-0000-7000-8000-000000000001");
    assert_eq!(
        outbox.store.find(rows[2].id).await.unwrap().len(),
        1,
        "whatever way its id is written"
    );
}
