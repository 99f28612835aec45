//! What is in the outbox, read without the adapter.

use sendoff::Uuid;
use sendoff::emit::Dialect;
use serde_json::Value;

use super::EmitHarness;

/// Every message, as JSON, in the order in which they were emitted.
pub(super) async fn rows<H: EmitHarness>(harness: &H) -> Vec<Value> {
    let sql = match H::DIALECT {
        Dialect::Postgres => {
            "SELECT json_build_object('id', id, 'topic', topic, 'payload', encode(payload, 'hex'), \
             'content_type', content_type, 'headers', headers, 'key', key, 'aggregate_type', aggregate_type, \
             'aggregate_id', aggregate_id, 'schema_version', schema_version, 'idempotency_key', idempotency_key, \
             'available_at', (extract(epoch FROM available_at) * 1000000)::bigint, \
             'expires_at', (extract(epoch FROM expires_at) * 1000000)::bigint, 'priority', priority, \
             'max_attempts', max_attempts, 'status', status, 'detail', detail)::text FROM outbox_all ORDER BY seq"
        }
        Dialect::Mysql => {
            // As text: on MySQL JSON is a type of its own.
            "SELECT CAST(JSON_OBJECT('id', id, 'topic', topic, 'payload', LOWER(HEX(payload)), \
             'content_type', content_type, 'headers', JSON_EXTRACT(headers, '$'), \
             'key', CONVERT(`key` USING utf8mb4), 'aggregate_type', aggregate_type, 'aggregate_id', aggregate_id, \
             'schema_version', schema_version, 'idempotency_key', idempotency_key, \
             'available_at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', available_at), \
             'expires_at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at), 'priority', priority, \
             'max_attempts', max_attempts, 'status', status, 'detail', detail) AS CHAR) FROM outbox_all ORDER BY seq"
        }
        _ => {
            "SELECT json_object('id', id, 'topic', topic, 'payload', lower(hex(payload)), \
             'content_type', content_type, 'headers', json(headers), 'key', key, 'aggregate_type', aggregate_type, \
             'aggregate_id', aggregate_id, 'schema_version', schema_version, 'idempotency_key', idempotency_key, \
             'available_at', available_at, 'expires_at', expires_at, 'priority', priority, \
             'max_attempts', max_attempts, 'status', status, 'detail', detail) FROM outbox_all ORDER BY seq"
        }
    };
    let texts = harness.texts(&harness.sql(sql)).await;
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

pub(super) fn ids(rows: &[Value]) -> Vec<Uuid> {
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
