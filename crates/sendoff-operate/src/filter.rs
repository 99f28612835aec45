//! Which messages: filters as people write them.

use sendoff::store::{Filter, Status};
use sendoff::{Error, ErrorKind, Result, Uuid};

use crate::written::{Moment, WrittenFilter};

/// The names that [`parse_filter`] knows, each with what it stands for.
pub const FILTER_NAMES: &[(&str, &str)] = &[
    ("id", "this id; may be given several times"),
    ("status", "pending, retry, delivered or dead"),
    ("topic", "this topic; * stands for any text"),
    ("key", "this ordering key"),
    ("aggregate_type", "this aggregate type"),
    ("aggregate_id", "this aggregate id"),
    ("idempotency_key", "this idempotency key"),
    ("leg", "this sink"),
    ("error", "the last error contains this"),
    ("payload", "the payload contains this"),
    (
        "created_from",
        "created at or after this: 2026-01-31, 2026-01-31T12:00:00Z, or so long ago: 30m, 12h, 7d",
    ),
    ("created_until", "created before this, written the same way"),
];

/// Reads a filter from pairs such as `status=dead` and `topic=order.*`. All of them have to fit.
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
                Error::new(ErrorKind::Invalid, format!("the filter {pair:?} is no name=value"))
                    .next_step("write it like status=dead or topic=order.*"),
            );
        };
        set(&mut written, name.trim(), value)?;
    }
    written.check()?;
    Ok(written)
}

/// Checks that a filter can fit anything.
pub(crate) fn validate(filter: &Filter) -> Result<()> {
    let texts = [
        ("topic", &filter.topic),
        ("key", &filter.key),
        ("aggregate_type", &filter.aggregate_type),
        ("aggregate_id", &filter.aggregate_id),
        ("idempotency_key", &filter.idempotency_key),
        ("leg", &filter.leg),
        ("error", &filter.error),
        ("payload", &filter.payload),
    ];
    for (name, text) in texts {
        match text.as_deref() {
            Some("") => {
                return Err(Error::new(ErrorKind::Invalid, format!("the filter {name} is empty"))
                    .next_step("give it a value, or leave it out"));
            }
            Some(text) if text.contains('\0') => {
                return Err(
                    Error::new(ErrorKind::Invalid, format!("the filter {name} holds a NUL character"))
                        .because("databases cannot compare it as text")
                        .next_step("search for another part"),
                );
            }
            Some(_) | None => {}
        }
    }
    match (filter.created_from, filter.created_until) {
        (Some(from), Some(until)) if from >= until => Err(Error::new(
            ErrorKind::Invalid,
            "no message is created between created_from and created_until",
        )
        .because("the first is not before the second")
        .next_step("exchange them; created_until itself is not included")),
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
        "leg" => once(&mut filter.leg, name, value.to_owned()),
        "error" => once(&mut filter.error, name, value.to_owned()),
        "payload" => once(&mut filter.payload, name, value.to_owned()),
        "created_from" => once(&mut written.created_from, name, moment(name, value)?),
        "created_until" => once(&mut written.created_until, name, moment(name, value)?),
        unknown => {
            let known: Vec<_> = FILTER_NAMES.iter().map(|(name, _)| *name).collect();
            Err(
                Error::new(ErrorKind::Invalid, format!("there is no filter {unknown:?}"))
                    .next_step(format!("use one of {}", known.join(", "))),
            )
        }
    }
}

fn once<T>(field: &mut Option<T>, name: &str, value: T) -> Result<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(
            Error::new(ErrorKind::Invalid, format!("the filter {name} is given twice"))
                .because("all filters have to fit")
                .next_step("keep one of them"),
        ),
    }
}

fn status(value: &str) -> Result<Status> {
    let all = [Status::Pending, Status::Retry, Status::Delivered, Status::Dead];
    let found = all.into_iter().find(|status| status.as_str() == value);
    found.ok_or_else(|| unreadable("status", value, "pending, retry, delivered or dead"))
}

fn moment(name: &str, value: &str) -> Result<Moment> {
    Moment::parse(value).ok_or_else(|| unreadable(name, value, "2026-01-31, 2026-01-31T12:00:00Z or an age such as 7d"))
}

fn unreadable(name: &str, value: &str, wanted: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("the filter {name} cannot be {value:?}")).next_step(format!("use {wanted}"))
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
            "leg=audit",
            "error= timed out ",
            "payload={\"a\":1}",
            "created_from=1970-01-02",
            "created_until=1d",
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
                leg: text("audit"),
                error: text(" timed out "),
                payload: text("{\"a\":1}"),
                created_from: day(1),
                created_until: day(2),
            }
        );
    }

    #[test]
    fn every_name_in_the_list_is_known() {
        for (name, _) in FILTER_NAMES {
            let error = parse_filter([format!("{name}=")]).unwrap_err();
            assert!(!error.to_string().contains("there is no filter"), "{error}");
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
            ("status=DEAD", "pending, retry, delivered or dead"),
            ("id=7", "UUID"),
            ("topic=", "empty"),
            ("key=a\0", "NUL"),
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
        assert!(refused(&["created_from=2026-01-02", "created_until=2026-01-02"]).contains("not before"));
    }
}
