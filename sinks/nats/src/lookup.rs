//! Requests to JetStream's API: whether it is enabled, and which stream covers a subject.

use std::time::Duration;

use async_nats::jetstream::context::RequestErrorKind;
use async_nats::jetstream::{Context, Error as ApiError};
use sendoff::Outcome;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::error;

/// How long JetStream may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The part of an answer that all versions of the server share.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) error: Option<ApiError>,
    /// A list of names, or a number of streams.
    #[serde(default)]
    streams: serde_json::Value,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// No responders: JetStream is not enabled.
    Nobody,
    /// No answer in time.
    TooLate,
    /// The answer cannot be parsed.
    Unreadable,
}

/// Sends a request to JetStream's API.
pub(crate) async fn ask(jetstream: &Context, api: &str, question: &impl Serialize) -> Result<Answer, Silence> {
    match timeout(PATIENCE, jetstream.request::<_, _, Answer>(api.to_owned(), question)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(refused)) => Err(match refused.kind() {
            RequestErrorKind::NoResponders => Silence::Nobody,
            RequestErrorKind::TimedOut => Silence::TooLate,
            RequestErrorKind::InvalidSubject | RequestErrorKind::Other => Silence::Unreadable,
        }),
        Err(_) => Err(Silence::TooLate),
    }
}

#[derive(Serialize)]
struct Question<'a> {
    subject: &'a str,
}

/// For a subject without responders: checks whether its stream has no leader for the moment, or no stream covers it. In
/// the second case the result is the message's outcome.
pub(crate) async fn lookup(jetstream: &Context, subject: &str) -> Result<Option<Outcome>, Silence> {
    let Answer { error, streams } = ask(jetstream, "STREAM.NAMES", &Question { subject }).await?;
    if let Some(refused) = error {
        return Ok(Some(error::stream(&refused)));
    }
    let is_covered = streams.as_array().is_some_and(|names| !names.is_empty());
    Ok((!is_covered).then(|| error::no_stream(subject)))
}

impl Silence {
    /// The outcome of a message to a subject without responders, when JetStream gives no information about it.
    pub(crate) fn outcome(self, subject: &str) -> Outcome {
        match self {
            Self::Nobody => error::no_jetstream(),
            Self::TooLate => error::no_stream_perhaps(subject, "does not answer"),
            Self::Unreadable => error::no_stream_perhaps(subject, "gives no valid answer"),
        }
    }
}
