//! What the tables take in, and where.

use crate::outbox::TestOutbox;

fn says(refused: rusqlite::Result<usize>) -> String {
    match refused {
        Err(error) => error.to_string(),
        Ok(rows) => panic!("{rows} were written"),
    }
}

#[tokio::test]
async fn a_payload_of_16_mib_is_taken_and_more_only_where_the_setting_allows_it() {
    let outbox = TestOutbox::new().await;
    let connection = outbox.plain();
    let set = |bytes: u32| {
        let sql = "UPDATE outbox_setting SET value = ?1 WHERE name = 'max_payload_bytes'";
        assert_eq!(connection.execute(sql, [bytes.to_string()]).unwrap(), 1);
    };
    // Bytes, and a text whose letters have two of them.
    let kinds = ["zeroblob(?1)", "replace(hex(zeroblob(?1 / 4)), '0', 'é')"];
    for (table, payload) in ["outbox_message", "outbox_job"]
        .map(|table| kinds.map(|kind| (table, kind)))
        .concat()
    {
        set(16_777_216);
        let insert = |bytes: u32| {
            let sql = format!("INSERT INTO {table} (topic, payload) VALUES ('t', {payload})");
            connection.execute(&sql, [bytes])
        };
        assert_eq!(insert(16_777_216).unwrap(), 1);
        let error = says(insert(16_777_220));
        assert!(
            error.contains("payload: more bytes than max_payload_bytes in outbox_setting"),
            "{error}"
        );
        set(16_777_300);
        assert_eq!(insert(16_777_300).unwrap(), 1);
        says(insert(16_777_304));
        // Nobody can take less than the tables promise.
        set(7);
        assert_eq!(insert(16_777_216).unwrap(), 1);
        let count: i64 = outbox.ask(&format!("SELECT count(*) FROM {table}"));
        assert_eq!(count % 3, 0, "{table}");
    }
}

/// Relays look in lanes 0 to 79. A row elsewhere would never be delivered. Numbers do not matter: see
/// `rows_inserted_below_the_floor_by_hand_are_found`.
#[tokio::test]
async fn no_row_is_written_where_no_relay_reads() {
    let outbox = TestOutbox::new().await;
    let connection = outbox.plain();
    let refused = |sql: &str| {
        let error = says(connection.execute(sql, []));
        assert!(error.contains("CHECK constraint failed"), "{sql}: {error}");
    };
    let sql = "INSERT INTO outbox_message (topic, payload) VALUES ('t', '')";
    assert_eq!(connection.execute(sql, []).unwrap(), 1);
    let computed = says(connection.execute("UPDATE outbox_message SET lane = 99", []));
    assert!(computed.contains("generated column"), "{computed}");
    for (table, column, word) in [("waiting", "state", "parked"), ("dead", "reason", "expired")] {
        let insert = |lane: i64| {
            format!(
                "INSERT INTO outbox_{table} (lane, seq, id, {column}, topic, payload)
                 VALUES ({lane}, -5, 'x', '{word}', 't', '')"
            )
        };
        for lane in [99, 80, -1, -7] {
            refused(&insert(lane));
        }
        assert_eq!(connection.execute(&insert(79), []).unwrap(), 1);
    }
}
