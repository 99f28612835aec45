//! Large rows, as a server really sends them.

use sendoff::store::{DeadReason, DeliverySettlement, ReadRequest, RelayStore, Row, Settlement, Verdict};

use crate::scratch::{Scratch, connect, message};

/// It can be written by whoever turns the limits off, as copies of values that are large already, and it cannot be sent: a message
/// of the protocol ends at 1 GB.
#[tokio::test]
async fn a_row_that_cannot_be_sent_is_set_aside_where_it_is() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("before").key("k")]).await;
    let client = connect().await;
    let insert = "CREATE TEMPORARY TABLE large (payload bytea, content_type text);
        INSERT INTO large VALUES (convert_to(repeat('x', 500000000), 'UTF8'), '');
        UPDATE large SET content_type = repeat('y', 700000000);
        SET session_replication_role = replica;
        INSERT INTO outbox_message (lane, seq, topic, key, payload, content_type)
        SELECT outbox_lane_of('k', 0, gen_random_uuid(), 0::smallint), nextval('outbox_message_seq_seq'), 'huge', 'k', payload,
            content_type
        FROM large";
    client.batch_execute(&scratch.names.render(insert)).await.unwrap();
    scratch.emit(&[message("after").key("k")]).await;
    let mut relay = scratch.relay().await;
    let (mut rows, mut failures) = (Vec::new(), 0);
    while rows.len() < 3 {
        let request = ReadRequest {
            limit: 10,
            bytes: 1 << 20,
            ready: true,
            ..ReadRequest::default()
        };
        match relay.reader.read(request).await {
            Ok(page) => rows.extend(page.rows),
            Err(_) => failures += 1,
        }
        assert!(failures < 5, "it is asked for again and again");
    }
    assert!(matches!(&rows[0], Row::Message(outgoing) if outgoing.topic == "before"));
    assert!(matches!(&rows[2], Row::Message(outgoing) if outgoing.topic == "after"));
    let Row::Unreadable { row_ref, why } = &rows[1] else {
        panic!("not set aside: {:?}", rows[1].row_ref());
    };
    assert!(why.contains("1200000"), "{why}");
    let settlement = Settlement {
        row_ref: row_ref.clone(),
        epoch: relay.epoch(row_ref.lane),
        deliveries: vec![DeliverySettlement {
            sink: "".into(),
            verdict: Verdict::Dead {
                reason: DeadReason::Unreadable,
                error: why.clone(),
                charged: false,
                blocks: false,
            },
        }],
        key: None,
        attempts: 0,
    };
    let report = relay.store.settle(relay.owner, &[settlement]).await.unwrap();
    assert!(report.lost.is_empty());
    let dead = "SELECT octet_length(payload) FROM outbox_dead WHERE reason = 'unreadable'";
    let dead = client.query_one(&scratch.names.render(dead), &[]).await.unwrap();
    assert_eq!(dead.get::<_, i32>(0), 500_000_000);
}
