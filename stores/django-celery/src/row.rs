//! One row of `celery_outbox`.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::store::{RowRef, Table};
use sendoff::{Headers, Outgoing, Result, Uuid};
use sendoff_celery::CONTENT_TYPE;

use crate::options;

/// A stored task. Its JSON is unchanged from the database.
#[derive(Clone, PartialEq)]
pub struct Row {
    /// The id of the row.
    pub id: i64,
    /// The id of the task, which need not be a UUID.
    pub task_id: String,
    /// The name of the task.
    pub task_name: String,
    /// The positional arguments: a JSON array.
    pub args: String,
    /// The keyword arguments: a JSON object.
    pub kwargs: String,
    /// The options of the task: a JSON object.
    pub options: String,
    /// The number of failed attempts.
    pub retries: u16,
    /// When the task was emitted.
    pub created_at: SystemTime,
    /// Sentry's trace header of the emitting request.
    pub sentry_trace_id: Option<String>,
    /// Sentry's baggage header of the emitting request.
    pub sentry_baggage: Option<String>,
    /// The log context of the caller, a JSON object. Log lines about the task have it; it is not sent to the broker,
    /// like in the Python relay.
    pub structlog_context: Option<String>,
}

/// Without arguments: they are the application's.
impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .field("task_name", &self.task_name)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

impl Row {
    /// Converts the row to a message for a Celery sink.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when its options are no JSON object.
    pub fn outgoing(&self) -> Result<Arc<Outgoing>> {
        let uuid = Uuid::parse_str(&self.task_id).ok();
        // Any other spelling, or no UUID at all, has to be said in words.
        let spelt = uuid.filter(|uuid| uuid.as_hyphenated().to_string() == self.task_id);
        let named = spelt.is_none().then_some(self.task_id.as_str());
        let options = options::for_sink(&self.options, named)?;
        let (args, kwargs) = (&self.args, &self.kwargs);
        let mut headers = Headers::new();
        for (name, value) in [
            ("sentry-trace", &self.sentry_trace_id),
            ("baggage", &self.sentry_baggage),
        ] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                headers.insert(name, value);
            }
        }
        Ok(Arc::new(Outgoing {
            id: uuid.unwrap_or_else(|| Uuid::from_u128(u128::from(self.id.unsigned_abs()))),
            topic: self.task_name.clone(),
            payload: format!(r#"{{"args":{args},"kwargs":{kwargs},"options":{options}}}"#).into(),
            content_type: Some(CONTENT_TYPE.to_owned()),
            headers,
            created_at: self.created_at,
            attempts: self.retries.into(),
            ..Outgoing::blank(RowRef {
                table: Table::Ready,
                lane: 0,
                seq: self.id,
                sink: None,
                id: sendoff::Uuid::nil().into(),
                locator: 0,
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(task_id: &str) -> Row {
        Row {
            id: 7,
            task_id: task_id.to_owned(),
            task_name: "shop.add".to_owned(),
            args: "[1, 12345678901234567890123]".to_owned(),
            kwargs: "{}".to_owned(),
            options: r#"{"queue": "mail"}"#.to_owned(),
            retries: 2,
            created_at: SystemTime::UNIX_EPOCH,
            sentry_trace_id: Some("t".to_owned()),
            sentry_baggage: Some(String::new()),
            structlog_context: Some("{\"u\": 1}".to_owned()),
        }
    }

    fn payload(task_id: &str) -> String {
        String::from_utf8(row(task_id).outgoing().unwrap().payload.to_vec()).unwrap()
    }

    #[test]
    fn a_task_id_reaches_the_worker_letter_for_letter() {
        let usual = "7c3234b9-320e-4d4c-8683-366752c9accf";
        assert!(!payload(usual).contains("task_id"));
        for odd in ["7C3234B9-320E-4D4C-8683-366752C9ACCF", "nightly \"1\""] {
            let payload = payload(odd);
            assert!(payload.contains("task_id"), "{payload}");
            assert!(payload.contains(&odd.replace('"', "\\\"")), "{payload}");
        }
    }

    #[test]
    fn numbers_keep_their_digits_and_empty_baggage_is_none() {
        let outgoing = row("x").outgoing().unwrap();
        assert!(
            outgoing
                .payload
                .starts_with(br#"{"args":[1, 12345678901234567890123],"#)
        );
        assert_eq!(outgoing.headers.len(), 1);
        assert_eq!((outgoing.attempts, outgoing.row_ref.seq), (2, 7));
    }

    #[test]
    fn arguments_are_not_shown() {
        assert!(!format!("{:?}", row("x")).contains("12345678901234567890123"));
    }
}
