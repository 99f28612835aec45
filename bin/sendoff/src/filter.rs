//! The filter flags of all listing commands.

use std::time::Duration;

use sendoff::Result;
use sendoff_operate::{KnownNames, WrittenFilter, parse_filter};

use crate::config::parse_duration;
use crate::output::printable;
use crate::session::Session;

/// Filters; all of them must match.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only messages of this topic; * matches any text
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Only messages with this ordering key; * matches any text
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Only deliveries to this sink
    #[arg(long, value_name = "SINK")]
    sink: Option<String>,
    /// Only dead letters with this reason: exhausted, permanent, expired, unroutable, unreadable or crashed
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Only messages with this text in topic, key, aggregate, idempotency key or error, or at the start of their id
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only dead letters that died at most this long ago (database clock)
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    died_since: Option<Duration>,
    /// Only messages created at most this long ago, such as 30m, 12h or 7d (database clock)
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    newer_than: Option<Duration>,
    /// Only messages created more than this long ago (database clock)
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Only messages with this value. Names: id, error, payload, payload.PATH, aggregate_type, aggregate_id,
    /// idempotency_key, created_from, created_until, died_from, died_until
    #[arg(long = "filter", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
}

impl FilterArgs {
    /// The filter of the flags and of `more`. Ages count back from the database's clock, which is read later.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for an invalid name or value.
    pub(crate) fn written(&self, more: impl IntoIterator<Item = String>) -> Result<WrittenFilter> {
        let flag = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
        let age = |name: &str, age: Option<Duration>| age.map(|age| format!("{name}={}ms", age.as_millis()));
        let flags = [
            flag("topic", &self.topic),
            flag("key", &self.key),
            flag("sink", &self.sink),
            flag("reason", &self.reason),
            flag("search", &self.search),
            age("died_from", self.died_since),
            age("created_from", self.newer_than),
            age("created_until", self.older_than),
        ];
        let pairs = flags.into_iter().flatten().chain(self.pairs.iter().cloned());
        parse_filter(pairs.chain(more))
    }

    /// Says if nobody knows the sink of the filter. It is no error: dead letters outlive their sinks.
    ///
    /// # Errors
    /// Errors of the database.
    pub(crate) async fn check_sink(&self, session: &Session) -> Result<()> {
        let of_pair = |pair: &String| pair.strip_prefix("sink=").map(str::to_owned);
        let Some(sink) = self.sink.clone().or_else(|| self.pairs.iter().find_map(of_pair)) else {
            return Ok(());
        };
        if let Err(unknown) = known_sinks(session).await?.check(&sink) {
            let next = unknown.next().map(|next| format!(": {next}")).unwrap_or_default();
            session.note(&printable(&format!("{}{next}", unknown.what())));
        }
        Ok(())
    }
}

/// The sinks of the configuration and of the relays that run.
///
/// # Errors
/// Errors of the database.
pub(crate) async fn known_sinks(session: &Session) -> Result<KnownNames> {
    let mut names: Vec<String> = session
        .config()?
        .sinks
        .iter()
        .map(|sink| sink.name().to_owned())
        .collect();
    names.extend(session.operator().await?.routed_sinks().await?);
    Ok(KnownNames::new("sink", names))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn flags_and_pairs_make_one_filter() {
        let args = FilterArgs {
            topic: Some("order.*".into()),
            pairs: vec!["sink=audit".into()],
            ..FilterArgs::default()
        };
        let written = args.written(["status=dead".to_owned()]).unwrap();
        let filter = written.as_of(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(
            (filter.topic.as_deref(), filter.sink.as_deref()),
            (Some("order.*"), Some("audit"))
        );
        assert!(args.written(["topic=b".to_owned()]).is_err());
    }

    #[test]
    fn ages_count_back_from_the_time_that_is_told() {
        let (one, two) = (Duration::from_secs(3600), Duration::from_secs(7200));
        let args = |newer_than, older_than| FilterArgs {
            newer_than: Some(newer_than),
            older_than: Some(older_than),
            ..FilterArgs::default()
        };
        let now = SystemTime::UNIX_EPOCH + 10 * one;
        let filter = args(two, one).written([]).unwrap().as_of(now).unwrap();
        assert_eq!(filter.created_from, Some(now - two));
        assert_eq!(filter.created_until, Some(now - one));
        assert!(args(one, two).written([]).is_err(), "nothing matches both");
    }
}
