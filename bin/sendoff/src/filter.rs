//! Which messages: the flags that all listing commands share.

use sendoff::Result;
use sendoff::store::Filter;
use sendoff_operate::parse_filter;

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
        let flags = [flag("topic", &self.topic), flag("key", &self.key)];
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
            key: None,
            pairs: vec!["leg=audit".into()],
        };
        let filter = args.filter(["status=dead".to_owned()]).unwrap();
        assert_eq!(
            (filter.topic.as_deref(), filter.leg.as_deref()),
            (Some("order.*"), Some("audit"))
        );
        assert!(args.filter(["topic=b".to_owned()]).is_err());
    }
}
