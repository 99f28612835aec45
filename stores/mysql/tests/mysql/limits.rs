//! What the tables take in, and where.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use crate::scratch::{Scratch, connect, topics};

/// A connection that may bring more than 16 MiB. A server with the usual `max_allowed_packet` takes no such payload at all; one that
/// was allowed more is for all connections that begin later, and harms nobody.
async fn wide() -> Conn {
    let mut conn = connect().await;
    conn.query_drop("SET GLOBAL max_allowed_packet = 67108864")
        .await
        .unwrap();
    connect().await
}

fn says(refused: Result<(), Error>) -> String {
    match refused.expect_err("it is refused") {
        Error::Server(error) => format!("{} {}", error.code, error.message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_payload_of_16_mib_is_taken_and_more_only_where_the_setting_allows_it() {
    let scratch = Scratch::new().await;
    let mut conn = wide().await;
    for table in ["outbox_message", "outbox_job"] {
        scratch
            .run("UPDATE outbox_setting SET value = '16777216' WHERE name = 'max_payload_bytes'")
            .await;
        let insert = |bytes: u32| {
            let sql = format!("INSERT INTO {table} (topic, payload) VALUES ('t', REPEAT('x', {bytes}))");
            scratch.names.render(&sql)
        };
        conn.query_drop(insert(16_777_216)).await.unwrap();
        let error = says(conn.query_drop(insert(16_777_217)).await);
        assert!(
            error.starts_with("1406 ") && error.contains("payload: 16777217 bytes"),
            "{error}"
        );
        scratch
            .run("UPDATE outbox_setting SET value = '16777300' WHERE name = 'max_payload_bytes'")
            .await;
        conn.query_drop(insert(16_777_300)).await.unwrap();
        let error = says(conn.query_drop(insert(16_777_301)).await);
        let limit = scratch.names.render("max_payload_bytes in outbox_setting is 16777300");
        assert!(error.contains(&limit), "{error}");
        // Nobody can take less than the tables promise.
        scratch
            .run("UPDATE outbox_setting SET value = '7' WHERE name = 'max_payload_bytes'")
            .await;
        conn.query_drop(insert(16_777_216)).await.unwrap();
        let count = format!("SELECT count(*) FROM {table}");
        assert_eq!(scratch.value(&count).await, "3", "{table}");
    }
}

/// Relays look in lanes 0 to 79, and move on what is in 80 and 81. A row elsewhere would never be delivered.
#[tokio::test]
async fn no_row_is_written_where_no_relay_reads() {
    let scratch = Scratch::new().await;
    let mut conn = connect().await;
    scratch
        .run("INSERT INTO outbox_message (topic, payload, lane, seq) VALUES ('before all', 'x', 99, -5)")
        .await;
    let violates = |error: String| {
        // MySQL, and MariaDB.
        assert!(error.starts_with("3819 ") || error.starts_with("4025 "), "{error}");
    };
    for lane in [99, 82, -7] {
        let update = format!("UPDATE outbox_message SET lane = {lane}");
        violates(says(conn.query_drop(scratch.names.render(&update)).await));
        for (table, column, word) in [("waiting", "state", "parked"), ("dead", "reason", "expired")] {
            let insert = |lane: i32| {
                scratch.names.render(&format!(
                    "INSERT INTO outbox_{table} (lane, seq, id, {column}, topic, payload, history)
                     VALUES ({lane}, 1, UUID(), '{word}', 't', '', '[]')"
                ))
            };
            violates(says(conn.query_drop(insert(lane)).await));
            violates(says(conn.query_drop(insert(80)).await));
            conn.query_drop(insert(79)).await.unwrap();
        }
    }
    let mut relay = scratch.relay().await;
    assert_eq!(topics(&relay.read(1).await), ["before all"], "numbers do not matter");
}
