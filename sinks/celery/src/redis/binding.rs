//! Bindings: the queues of an exchange. kombu keeps them in one set per exchange.

use crate::config::{ExchangeType, RedisConfig};
use crate::route::Queue;

/// A member of a set of bindings in Redis: the arguments of `SADD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The key of the set.
    pub key: String,
    /// The member: the routing key, the pattern and the queue.
    pub member: String,
}

impl Binding {
    /// The bindings that Celery writes when it declares a queue.
    pub(super) fn of(queue: &Queue, config: &RedisConfig) -> Vec<Self> {
        let (sep, routing_key) = (&config.sep, &queue.routing_key);
        let pattern = match queue.exchange_type {
            ExchangeType::Topic => topic_pattern(routing_key),
            ExchangeType::Direct | ExchangeType::Fanout => String::new(),
        };
        let member = format!("{routing_key}{sep}{pattern}{sep}{}", queue.name);
        let sets: &[&str] = if config.permanent_bindings {
            &["_kombu.binding", "_kombu.binding_permanent"]
        } else {
            &["_kombu.binding"]
        };
        sets.iter()
            .map(|set| Self {
                key: format!("{}{set}.{}", config.global_keyprefix, queue.exchange),
                member: member.clone(),
            })
            .collect()
    }
}

/// The key of the set of an exchange's bindings.
pub(super) fn table_key(exchange: &str, config: &RedisConfig) -> String {
    format!("{}_kombu.binding.{exchange}", config.global_keyprefix)
}

/// The queues that match a routing key, sorted; invalid members are skipped.
pub(super) fn bound_queues<'a>(
    members: impl IntoIterator<Item = &'a str>,
    exchange_type: ExchangeType,
    routing_key: &str,
    sep: &str,
) -> Vec<String> {
    let bindings = members.into_iter().filter_map(|member| {
        let mut parts = member.split(sep);
        Some((parts.next()?, parts.next()?, parts.next()?)).filter(|_| parts.next().is_none())
    });
    let leads_here = |key: &str| match exchange_type {
        ExchangeType::Direct => key == routing_key,
        ExchangeType::Topic => topic_fits(key, routing_key),
        ExchangeType::Fanout => true,
    };
    let mut queues: Vec<String> = bindings
        .filter(|(key, _, queue)| !queue.is_empty() && leads_here(key))
        .map(|(_, _, queue)| queue.to_owned())
        .collect();
    queues.sort();
    queues.dedup();
    queues
}

/// The regular expression that kombu stores with a routing key that has wildcards.
fn topic_pattern(key: &str) -> String {
    let words = key.split('.').map(|word| match word {
        "*" => r"[^\.]+".to_owned(),
        "#" => ".*?".to_owned(),
        word => word.chars().fold(String::new(), |mut escaped, character| {
            if !(character.is_ascii_alphanumeric() || "_#*".contains(character)) {
                escaped.push('\\');
            }
            escaped.push(character);
            escaped
        }),
    });
    format!("^{}$", words.collect::<Vec<_>>().join(r"\."))
}

/// Whether a routing key matches a binding, as in kombu: `*` is one word, `#` any text, including dots.
fn topic_fits(binding: &str, key: &str) -> bool {
    fn fits(binding: &[&str], key: &[&str]) -> bool {
        match binding.split_first() {
            None => key.is_empty(),
            // kombu's `#` matches at least an empty word: the dots around it are always required.
            Some((&"#", rest)) => (1..=key.len()).any(|words| fits(rest, &key[words..])),
            Some((word, rest)) => key.split_first().is_some_and(|(first, others)| {
                (word == first || *word == "*" && !first.is_empty()) && fits(rest, others)
            }),
        }
    }
    let (binding, key): (Vec<&str>, Vec<&str>) = (binding.split('.').collect(), key.split('.').collect());
    fits(&binding, &key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_written_as_kombu_writes_them() {
        assert_eq!(topic_pattern("feed.*.rss"), r"^feed\.[^\.]+\.rss$");
        assert_eq!(topic_pattern("mail.#"), r"^mail\..*?$");
        assert_eq!(topic_pattern("a-b_c"), r"^a\-b_c$");
    }

    #[test]
    fn topics_fit_as_kombus_patterns_do() {
        for (binding, key, expected) in [
            ("feed.*.rss", "feed.x.rss", true),
            ("feed.*.rss", "feed.x.y.rss", false),
            ("feed.*", "feed.", false),
            ("mail.#", "mail.a.b", true),
            ("mail.#", "mail.", true),
            ("mail.#", "mail", false),
            ("#", "anything.at.all", true),
            ("#.end", "a.b.end", true),
            ("a.#.z", "a.z", false),
            ("exact", "exact", true),
            ("exact", "other", false),
        ] {
            assert_eq!(topic_fits(binding, key), expected, "{binding} {key}");
        }
    }

    #[test]
    fn only_the_queues_that_are_bound_get_a_message() {
        let members = [
            "k\u{6}\u{16}\u{6}\u{16}b",
            "k\u{6}\u{16}\u{6}\u{16}a",
            "o\u{6}\u{16}\u{6}\u{16}c",
            "junk",
        ];
        let bound = |exchange_type, key| bound_queues(members, exchange_type, key, "\u{6}\u{16}");
        assert_eq!(bound(ExchangeType::Direct, "k"), ["a", "b"]);
        assert_eq!(bound(ExchangeType::Fanout, ""), ["a", "b", "c"]);
        assert!(bound(ExchangeType::Direct, "none").is_empty());
    }
}
