//! What operators do with a Sendoff outbox: list, inspect, retry, release
