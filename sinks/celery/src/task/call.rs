//! A stored task.

use jiff::Timestamp;
use sendoff::{Headers, Outgoing, Result};
use sendoff_celery::CONTENT_TYPE;

use super::TaskOptions;
use crate::error::invalid;
use crate::python::{Text, Value, read_json};

/// A task as the outbox stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCall {
    /// The id of the task.
    pub id: Text,
    /// The name of the task.
    pub name: String,
    /// The positional arguments of the task.
    pub args: Vec<Value>,
    /// The keyword arguments of the task, in their order.
    pub kwargs: Vec<(Text, Value)>,
    /// The options of the task.
    pub options: TaskOptions,
    /// When the task was emitted, by the database's clock. Delays count from this time.
    pub created_at: Timestamp,
    /// The headers of the outbox's message. The worker gets them, too, but they cannot replace Celery's headers.
    pub headers: Headers,
}

impl TaskCall {
    /// Parses a task from a message of the outbox.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when the message is not a task, or its payload is not as [`sendoff::task`] says.
    pub fn from_delivery(outgoing: &Outgoing) -> Result<Self> {
        let content_type = outgoing.content_type();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case(CONTENT_TYPE) {
            return Err(invalid(
                format!("the message {:?} is not a Celery task", outgoing.topic),
                format!("its content type is {content_type:?} and not {CONTENT_TYPE:?}"),
                "emit it with Task, or route its topic to another sink",
            ));
        }
        let (args, kwargs, options) = parts(read_json(&outgoing.payload)?)?;
        let options = TaskOptions::new(options)?;
        let id = options.text("task_id")?;
        let created_at = Timestamp::try_from(outgoing.created_at).map_err(|error| {
            invalid(
                "created_at of the task is out of range",
                error.to_string(),
                "discard the task and emit it again",
            )
            .with_source(error)
        })?;
        Ok(Self {
            id: id.unwrap_or_else(|| outgoing.id.to_string().into()),
            name: outgoing.topic.clone(),
            args,
            kwargs,
            options,
            created_at,
            headers: outgoing.headers.clone(),
        })
    }
}

type Entries = Vec<(Text, Value)>;

fn parts(payload: Value) -> Result<(Vec<Value>, Entries, Entries)> {
    let Value::Map(entries) = payload else {
        return Err(shape("it is not an object"));
    };
    let (mut args, mut kwargs, mut options) = Default::default();
    for (name, value) in entries {
        match (name.as_str(), value) {
            (Some("args" | "kwargs" | "options"), Value::Null) => {}
            (Some("args"), Value::List(items)) => args = items,
            (Some("kwargs"), Value::Map(entries)) => kwargs = entries,
            (Some("options"), Value::Map(entries)) => options = entries,
            (Some("args"), _) => return Err(shape("args is not an array")),
            (Some("kwargs"), _) => return Err(shape("kwargs is not an object")),
            (Some("options"), _) => return Err(shape("options is not an object")),
            _ => return Err(shape(format!("it has an unknown entry {name:?}"))),
        }
    }
    Ok((args, kwargs, options))
}

fn shape(why: impl Into<String>) -> sendoff::Error {
    invalid(
        "the stored task cannot be parsed",
        why,
        "emit {\"args\": [...], \"kwargs\": {...}, \"options\": {...}}",
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use sendoff::store::{RowRef, Table};

    use super::*;

    pub(crate) fn outgoing(content_type: Option<&str>, payload: &str) -> Outgoing {
        Outgoing {
            id: sendoff::Uuid::from_u128(7),
            topic: "demo.add".into(),
            payload: payload.to_owned().into(),
            content_type: content_type.map(Into::into),
            created_at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_500_000),
            ..Outgoing::blank(RowRef {
                table: Table::Ready,
                lane: 0,
                seq: 1,
                sink: None,
                id: sendoff::Uuid::nil().into(),
                locator: 0,
            })
        }
    }

    fn read(payload: &str) -> Result<TaskCall> {
        TaskCall::from_delivery(&outgoing(Some(CONTENT_TYPE), payload))
    }

    #[test]
    fn every_part_may_be_left_out() {
        for payload in [
            "{}",
            r#"{"args":null,"kwargs":null,"options":null}"#,
            r#"{"options":{"queue":null}}"#,
        ] {
            let call = read(payload).unwrap();
            assert!(call.args.is_empty() && call.kwargs.is_empty(), "{payload}");
            assert_eq!(call.options.text("queue").unwrap(), None);
            assert!(call.id.is("00000000-0000-0000-0000-000000000007"));
            assert_eq!(call.created_at.as_microsecond(), 1_500_000);
        }
    }

    #[test]
    fn an_id_that_is_no_uuid_stands_in_the_options() {
        assert!(read(r#"{"options":{"task_id":"nightly"}}"#).unwrap().id.is("nightly"));
    }

    #[test]
    fn what_is_no_task_is_refused_with_a_reason() {
        let other = TaskCall::from_delivery(&outgoing(None, "{}")).unwrap_err();
        assert!(other.to_string().contains("application/json"), "{other}");
        for (payload, why) in [
            ("[]", "not an object"),
            (r#"{"args":{}}"#, "args is not"),
            (r#"{"kwargs":[]}"#, "kwargs is not"),
            (r#"{"options":1}"#, "options is not"),
            (r#"{"arg":[]}"#, "\"arg\""),
            (r#"{"options":{"coutdown":5}}"#, "\"coutdown\""),
            (r#"{"options":{"stamped_headers":["gone"]}}"#, "\"gone\""),
            (r#"{"options":{"stamped_headers":"gone"}}"#, "stamped_headers"),
        ] {
            let error = read(payload).unwrap_err().to_string();
            assert!(error.contains(why), "{payload}: {error}");
        }
        assert!(TaskCall::from_delivery(&outgoing(Some(&format!("{CONTENT_TYPE}; charset=utf-8")), "{}")).is_ok());
    }
}
