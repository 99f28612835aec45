//! Which messages: the flags that all listing commands share.

use std::time::Duration;

use sendoff::Result;
use sendoff_operate::{WrittenFilter, parse_filter};

use crate::config::parse_duration;

/// Filters; all of them have to fit.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// This topic; * stands for any text
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// This ordering key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Created no longer ago than this, like 30m, 12h or 7d, by the database's clock
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    newer_than: Option<Duration>,
    /// Created longer ago than this
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Any other: id, aggregate_type, aggregate_id, idempotency_key, leg, error, payload, created_from, created_until
    #[arg(long = "filter", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
}

impl FilterArgs {
    /// The filter, with what else was asked for. Its ages count back from the database's clock, once that is asked.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for a name or value that cannot be used.
    pub(crate) fn written(&self, more: impl IntoIterator<Item = String>) -> Result<WrittenFilter> {
        let flag = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
        let age = |name: &str, age: Option<Duration>| age.map(|age| format!("{name}={}ms", age.as_millis()));
        let flags = [
            flag("topic", &self.topic),
            flag("key", &self.key),
            age("created_from", self.newer_than),
            age("created_until", self.older_than),
        ];
        let pairs = flags.into_iter().flatten().chain(self.pairs.iter().cloned());
        parse_filter(pairs.chain(more))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn flags_and_pairs_make_one_filter() {
        let args = FilterArgs {
            topic: Some("order.*".into()),
            pairs: vec!["leg=audit".into()],
            ..FilterArgs::default()
        };
        let written = args.written(["status=dead".to_owned()]).unwrap();
        let filter = written.as_of(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(
            (filter.topic.as_deref(), filter.leg.as_deref()),
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
        assert!(args(one, two).written([]).is_err(), "nothing can be both");
    }
}
