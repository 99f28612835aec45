//! Which messages: the flags that all listing commands share.

use std::time::{Duration, SystemTime};

use sendoff::Result;
use sendoff::envelope::rfc3339;
use sendoff::store::Filter;
use sendoff_operate::parse_filter;

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
    /// Created no longer ago than this, like 30m, 12h or 7d
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
    /// The filter, with what else was asked for.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for a name or value that cannot be used.
    pub(crate) fn filter(&self, more: impl IntoIterator<Item = String>) -> Result<Filter> {
        let flag = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
        let now = SystemTime::now();
        let since = |name: &str, age: Option<Duration>| {
            let at = age.map(|age| now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH))?;
            Some(format!("{name}={}", rfc3339(at)))
        };
        let flags = [
            flag("topic", &self.topic),
            flag("key", &self.key),
            since("created_from", self.newer_than),
            since("created_until", self.older_than),
        ];
        let pairs = flags.into_iter().flatten().chain(self.pairs.iter().cloned());
        parse_filter(pairs.chain(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_pairs_make_one_filter() {
        let args = FilterArgs {
            topic: Some("order.*".into()),
            pairs: vec!["leg=audit".into()],
            ..FilterArgs::default()
        };
        let filter = args.filter(["status=dead".to_owned()]).unwrap();
        assert_eq!(
            (filter.topic.as_deref(), filter.leg.as_deref()),
            (Some("order.*"), Some("audit"))
        );
        assert!(args.filter(["topic=b".to_owned()]).is_err());
    }

    #[test]
    fn ages_count_from_now() {
        let args = FilterArgs {
            newer_than: Some(Duration::from_secs(7200)),
            older_than: Some(Duration::from_secs(3600)),
            ..FilterArgs::default()
        };
        let filter = args.filter([]).unwrap();
        let age = |at: Option<SystemTime>| at.unwrap().elapsed().unwrap().as_secs();
        assert!((7200..7260).contains(&age(filter.created_from)));
        assert!((3600..3660).contains(&age(filter.created_until)));
        let never = FilterArgs {
            newer_than: Some(Duration::from_secs(3600)),
            older_than: Some(Duration::from_secs(7200)),
            ..FilterArgs::default()
        };
        assert!(never.filter([]).is_err(), "nothing can be both");
    }
}
