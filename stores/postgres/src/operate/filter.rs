//! A filter as the values of the statements that take one.

use sendoff::Uuid;
use sendoff::store::{Filter, Status};
use tokio_postgres::types::Type;

use crate::pipeline::Param;

/// A filter as the statements take it.
pub(super) struct Columns<'a> {
    filter: &'a Filter,
    ids: Option<&'a [Uuid]>,
    status: Option<&'static str>,
    topic: Option<String>,
    key: Option<String>,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    payload: Option<&'a [u8]>,
    payload_paths: Option<String>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(filter: &'a Filter) -> Self {
        Self {
            filter,
            ids: Some(filter.ids.as_slice()).filter(|ids| !ids.is_empty()),
            status: filter.status.map(Status::as_str),
            topic: filter.topic.as_deref().map(like),
            key: filter.key.as_deref().map(like),
            aggregate_type: filter.aggregate_type.as_deref().map(like),
            aggregate_id: filter.aggregate_id.as_deref().map(like),
            payload: filter.payload.as_deref().map(str::as_bytes),
            payload_paths: (!filter.payload_paths.is_empty())
                .then(|| serde_json::json!(filter.payload_paths).to_string()),
        }
    }

    /// The values of `filter.sql` and `of_dead.sql`.
    pub(super) fn with_dead(&self) -> Vec<Param<'_>> {
        let mut params = self.params();
        params.push((&self.filter.reason, Type::TEXT));
        params.push((&self.filter.died_from, Type::TIMESTAMPTZ));
        params.push((&self.filter.died_until, Type::TIMESTAMPTZ));
        params
    }

    /// The values of `filter.sql`.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.ids, Type::UUID_ARRAY),
            (&self.status, Type::TEXT),
            (&self.topic, Type::TEXT),
            (&self.key, Type::TEXT),
            (&self.aggregate_type, Type::TEXT),
            (&self.aggregate_id, Type::TEXT),
            (&self.filter.idempotency_key, Type::TEXT),
            (&self.filter.sink, Type::TEXT),
            (&self.filter.error, Type::TEXT),
            (&self.payload, Type::BYTEA),
            (&self.filter.created_from, Type::TIMESTAMPTZ),
            (&self.filter.created_until, Type::TIMESTAMPTZ),
            (&self.filter.search, Type::TEXT),
            (&self.payload_paths, Type::TEXT),
        ]
    }
}

/// `*` for any text, and nothing else is special.
fn like(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        match c {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_star_is_special() {
        assert_eq!(like("order.*"), "order.%");
        assert_eq!(like("50%_a\\b"), "50\\%\\_a\\\\b");
    }
}
