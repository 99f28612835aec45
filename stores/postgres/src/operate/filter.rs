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
    payload: Option<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(filter: &'a Filter) -> Self {
        Self {
            filter,
            ids: Some(filter.ids.as_slice()).filter(|ids| !ids.is_empty()),
            status: filter.status.map(Status::as_str),
            topic: filter.topic.as_deref().map(like),
            payload: filter.payload.as_deref().map(str::as_bytes),
        }
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.ids, Type::UUID_ARRAY),
            (&self.status, Type::TEXT),
            (&self.topic, Type::TEXT),
            (&self.filter.key, Type::TEXT),
            (&self.filter.aggregate_type, Type::TEXT),
            (&self.filter.aggregate_id, Type::TEXT),
            (&self.filter.idempotency_key, Type::TEXT),
            (&self.filter.leg, Type::TEXT),
            (&self.filter.error, Type::TEXT),
            (&self.payload, Type::BYTEA),
            (&self.filter.created_from, Type::TIMESTAMPTZ),
            (&self.filter.created_until, Type::TIMESTAMPTZ),
        ]
    }
}

/// `*` for any text, and nothing else is special.
pub(super) fn like(topic: &str) -> String {
    let mut pattern = String::with_capacity(topic.len() + 4);
    for c in topic.chars() {
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
    fn only_the_star_is_special_in_a_topic() {
        assert_eq!(like("order.*"), "order.%");
        assert_eq!(like("50%_a\\b"), "50\\%\\_a\\\\b");
    }
}
