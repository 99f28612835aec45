//! Parses filters as people write them.

use std::time::SystemTime;

use sendoff::store::{DeadReason, Filter, PayloadPath, Status};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::written::{Moment, WrittenFilter};

/// The filter names that [`parse_filter`] accepts, each with its meaning.
pub const FILTER_NAMES: &[(&str, &str)] = &[
    ("id", "this id; may be given several times"),
    (
        "status",
        "pending, scheduled, retry, blocked, deferred, delivered or dead",
    ),
    ("topic", "this topic; * stands for any text"),
    ("key", "this ordering key; * stands for any text"),
    ("aggregate_type", "this aggregate type; * stands for any text"),
    ("aggregate_id", "this aggregate id; * stands for any text"),
    ("idempotency_key", "this idempotency key"),
    ("sink", "this sink"),
    ("error", "the last error contains this"),
    ("payload", "the payload contains this"),
    (
        "payload.PATH",
        "the payload is JSON with this value at the path: payload.customer.id=42",
    ),
    (
        "search",
        "the id starts with this, or topic, key, aggregate, idempotency key or error contains it",
    ),
    (
        "reason",
        "dead because of: exhausted, permanent, expired, unroutable, unreadable or crashed",
    ),
    (
        "created_from",
        "created at or after this: 2026-01-31, 2026-01-31T12:00:00Z, or an age: 30m, 12h, 7d",
    ),
    ("created_until", "created before this, in the same format"),
    ("died_from", "dead since this time or later, in the same format"),
    ("died_until", "dead since before this, in the same format"),
];

/// Reads a filter from pairs such as `status=dead` and `topic=order.*`. A message has to match all of them.
///
/// ```
/// let written = sendoff_operate::parse_filter(["status=dead", "topic=order.*"])?;
/// let filter = written.as_of(std::time::SystemTime::UNIX_EPOCH)?;
/// assert_eq!(filter.topic.as_deref(), Some("order.*"));
/// # Ok::<(), sendoff::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Invalid`] for a name that is not in [`FILTER_NAMES`] or is given twice, and for a value that cannot be
/// read.
pub fn parse_filter(pairs: impl IntoIterator<Item = impl AsRef<str>>) -> Result<WrittenFilter> {
    let mut written = WrittenFilter::default();
    for pair in pairs {
        let pair = pair.as_ref();
        let Some((name, value)) = pair.split_once('=') else {
            return Err(
                Error::new(ErrorKind::Invalid, format!("the filter {pair:?} is not name=value"))
                    .next_step("write a filter like status=dead or topic=order.*"),
            );
        };
        set(&mut written, name.trim(), value)?;
    }
    written.check()?;
    Ok(written)
}

/// Checks that a filter can match anything.
pub(crate) fn validate(filter: &Filter) -> Result<()> {
    let texts = [
        ("topic", &filter.topic),
        ("key", &filter.key),
        ("aggregate_type", &filter.aggregate_type),
        ("aggregate_id", &filter.aggregate_id),
        ("idempotency_key", &filter.idempotency_key),
        ("sink", &filter.sink),
        ("error", &filter.error),
        ("payload", &filter.payload),
        ("search", &filter.search),
    ];
    for (name, text) in texts {
        match text.as_deref() {
            Some("") => {
                return Err(Error::new(ErrorKind::Invalid, format!("the filter {name} is empty"))
                    .next_step("give the filter a value, or leave it out"));
            }
            Some(text) if text.contains('\0') => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("the filter {name} contains a NUL character"),
                )
                .because("databases cannot compare text with NUL")
                .next_step("search for text without NUL"));
            }
            Some(_) | None => {}
        }
    }
    for path in &filter.payload_paths {
        if path.path.iter().any(String::is_empty) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("the filter payload.{} has an empty part", path.path.join(".")),
            )
            .next_step("write the filter like payload.customer.id=42, or payload.items.0.sku=A1 for an array"));
        }
    }
    if let Some(reason) = filter.reason.as_deref()
        && !REASONS.iter().any(|known| known.as_str() == reason)
    {
        return Err(unreadable("reason", reason, &one_of(&REASONS.map(DeadReason::as_str))));
    }
    is_before("created", filter.created_from, filter.created_until)?;
    is_before("died", filter.died_from, filter.died_until)
}

/// The reasons of dead letters.
const REASONS: [DeadReason; 6] = [
    DeadReason::Exhausted,
    DeadReason::Permanent,
    DeadReason::Expired,
    DeadReason::Unroutable,
    DeadReason::Unreadable,
    DeadReason::Crashed,
];

fn one_of(names: &[&str]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        names => names.join(", "),
    }
}

fn is_before(name: &str, from: Option<SystemTime>, until: Option<SystemTime>) -> Result<()> {
    match (from, until) {
        (Some(from), Some(until)) if from >= until => Err(Error::new(
            ErrorKind::Invalid,
            format!("no message can match {name}_from and {name}_until"),
        )
        .because(format!("{name}_from is not before {name}_until"))
        .next_step(format!("swap them; {name}_until itself is not included"))),
        _ => Ok(()),
    }
}

fn set(written: &mut WrittenFilter, name: &str, value: &str) -> Result<()> {
    let filter = &mut written.filter;
    match name {
        "id" => {
            let id = Uuid::parse_str(value).map_err(|error| unreadable(name, value, "a UUID").with_source(error))?;
            filter.ids.push(id);
            Ok(())
        }
        "status" => once(&mut filter.status, name, status(value)?),
        "topic" => once(&mut filter.topic, name, value.to_owned()),
        "key" => once(&mut filter.key, name, value.to_owned()),
        "aggregate_type" => once(&mut filter.aggregate_type, name, value.to_owned()),
        "aggregate_id" => once(&mut filter.aggregate_id, name, value.to_owned()),
        "idempotency_key" => once(&mut filter.idempotency_key, name, value.to_owned()),
        "sink" => once(&mut filter.sink, name, value.to_owned()),
        "error" => once(&mut filter.error, name, value.to_owned()),
        "payload" => once(&mut filter.payload, name, value.to_owned()),
        "search" => once(&mut filter.search, name, value.to_owned()),
        "reason" => once(&mut filter.reason, name, value.to_owned()),
        "died_from" => once(&mut written.died_from, name, moment(name, value)?),
        "died_until" => once(&mut written.died_until, name, moment(name, value)?),
        "created_from" => once(&mut written.created_from, name, moment(name, value)?),
        "created_until" => once(&mut written.created_until, name, moment(name, value)?),
        path if path.starts_with("payload.") => {
            let path: Vec<String> = path.split('.').skip(1).map(str::to_owned).collect();
            if filter.payload_paths.iter().any(|other| other.path == path) {
                return Err(twice(name));
            }
            let value = value.to_owned();
            filter.payload_paths.push(PayloadPath { path, value });
            Ok(())
        }
        unknown => {
            let known: Vec<_> = FILTER_NAMES.iter().map(|(name, _)| *name).collect();
            Err(Error::new(ErrorKind::Invalid, format!("unknown filter {unknown:?}"))
                .next_step(format!("use one of {}", known.join(", "))))
        }
    }
}

fn once<T>(field: &mut Option<T>, name: &str, value: T) -> Result<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice(name)),
    }
}

fn twice(name: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("the filter {name} is given twice"))
        .because("each filter can be given once")
        .next_step("remove one of the two filters")
}

fn status(value: &str) -> Result<Status> {
    Status::named(value).ok_or_else(|| {
        unreadable(
            "status",
            value,
            "pending, scheduled, retry, blocked, deferred, delivered or dead",
        )
    })
}

fn moment(name: &str, value: &str) -> Result<Moment> {
    Moment::parse(value).ok_or_else(|| unreadable(name, value, "2026-01-31, 2026-01-31T12:00:00Z or an age such as 7d"))
}

fn unreadable(name: &str, value: &str, wanted: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!("the value {value:?} of the filter {name} is invalid"),
    )
    .next_step(format!("use {wanted}"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn refused(pairs: &[&str]) -> String {
        let error = parse_filter(pairs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.next().is_some(), "{error}");
        error.to_string()
    }

    #[test]
    fn every_known_name_sets_its_field() {
        let id = Uuid::nil();
        let filter = parse_filter([
            &format!("id={id}"),
            &format!("id={id}"),
            "status=retry",
            "topic=order.*",
            "key=a=b",
            "aggregate_type=order",
            "aggregate_id=7",
            "idempotency_key=i",
            "sink=audit",
            "error= timed out ",
            "payload={\"a\":1}",
            "created_from=1970-01-02",
            "created_until=1d",
            "payload.customer.id=42",
            "search=vip",
            "reason=expired",
            "died_from=1970-01-02",
            "died_until=1970-01-03",
        ])
        .unwrap();
        let filter = filter
            .as_of(SystemTime::UNIX_EPOCH + Duration::from_secs(3 * 86_400))
            .unwrap();
        let text = |text: &str| Some(text.to_owned());
        let day = |days: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400));
        assert_eq!(
            filter,
            Filter {
                ids: vec![id, id],
                status: Some(Status::Retry),
                topic: text("order.*"),
                key: text("a=b"),
                aggregate_type: text("order"),
                aggregate_id: text("7"),
                idempotency_key: text("i"),
                sink: text("audit"),
                error: text(" timed out "),
                payload: text("{\"a\":1}"),
                created_from: day(1),
                created_until: day(2),
                payload_paths: vec![PayloadPath {
                    path: vec!["customer".to_owned(), "id".to_owned()],
                    value: "42".to_owned(),
                }],
                search: text("vip"),
                reason: text("expired"),
                died_from: day(1),
                died_until: day(2),
                group: None,
            }
        );
    }

    #[test]
    fn every_name_in_the_list_is_known() {
        for (name, _) in FILTER_NAMES {
            // A value in a payload can be empty.
            let parsed = parse_filter([format!("{name}=")]);
            let error = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.contains("unknown filter"), "{error}");
            assert_eq!(error.is_empty(), *name == "payload.PATH", "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let text = refused(&["staus=dead"]);
        for (name, _) in FILTER_NAMES {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn values_that_cannot_be_are_refused_with_what_can() {
        for (pair, word) in [
            ("status", "name=value"),
            (
                "status=DEAD",
                "pending, scheduled, retry, blocked, deferred, delivered or dead",
            ),
            ("id=7", "UUID"),
            ("topic=", "empty"),
            ("key=a\0", "NUL"),
            (
                "reason=tired",
                "exhausted, permanent, expired, unroutable, unreadable or crashed",
            ),
            ("payload.a..b=1", "empty part"),
            ("search=", "empty"),
            ("created_from=yesterday", "2026-01-31T12:00:00Z"),
            ("created_from=2026-01-31T12:00", "2026-01-31T12:00:00Z"),
        ] {
            let text = refused(&[pair]);
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn filters_that_fit_nothing_are_refused() {
        assert!(refused(&["topic=a", "topic=b"]).contains("twice"));
        assert!(refused(&["payload.a=1", "payload.a=2"]).contains("twice"));
        assert!(refused(&["died_from=1d", "died_until=2d"]).contains("not before"));
        assert!(refused(&["created_from=2026-01-02", "created_until=2026-01-02"]).contains("not before"));
    }
}
