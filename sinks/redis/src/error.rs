//! Maps answers of Redis to outcomes, with texts for an operator.

use std::io;

use redis::{RedisError, RedisResult, ServerError, Value};
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::{Fate, Refusal};

/// The most characters of the server's text that a reason repeats.
const MOST: usize = 200;

/// Why a command has no usable answer, and what that means for the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// The message has this outcome, regardless of the other commands.
    Settled(Outcome),
    /// The user may run the command, but not on this key or channel.
    Denied(Reason),
    /// An argument of the command is larger than the server allows.
    Oversize(Reason),
    /// The connection broke before the answer, perhaps because of another command.
    Broken(Outcome),
}

impl Lack {
    /// The result for the message, if each message has its own key.
    pub fn fate(self) -> Fate {
        match self {
            Self::Settled(outcome) => Fate::Settled(outcome),
            Self::Denied(reason) => Fate::Settled(Outcome::Temporary(reason)),
            Self::Oversize(reason) => Fate::Settled(Outcome::Permanent(reason)),
            Self::Broken(outcome) => Fate::Broken(outcome),
        }
    }

    /// The outcome of a message that was sent alone.
    pub fn outcome(self) -> Outcome {
        match self.fate() {
            Fate::Settled(outcome) | Fate::Broken(outcome) => outcome,
        }
    }
}

/// Whether the user may run the command, but not on its key or channel. Servers have no code for it, only texts: "No
/// permissions to access a key", and, before version 7, "to access one of the keys used as arguments".
fn is_about_a_name(error: &ServerError) -> bool {
    error.code() == "NOPERM"
        && error
            .details()
            .is_some_and(|details| details.contains("permissions to access"))
}

/// Whether the command is too large. After a "Protocol error" the server closes the connection.
fn is_about_size(error: &ServerError) -> bool {
    let is = |details: &str| details.starts_with("Protocol error") || details.contains("too large to be stored");
    error.details().is_some_and(is)
}

fn oversize(error: &ServerError) -> Reason {
    let details: String = error.details().unwrap_or_default().chars().take(MOST).collect();
    let next =
        "raise proto-max-bulk-len of Redis, then retry the message, or store the data elsewhere and send a reference";
    format!("the message is too large for Redis: {details} ({next})").into()
}

fn denied() -> Reason {
    "the user of the Redis sink may not write to this key or channel: Redis answered NOPERM (allow it with ACL \
     SETUSER: ~keys, &channels; or change `key` of the sink, or the topic of the message)"
        .into()
}

/// The outcome of a message that the server refused. None of these messages has arrived.
pub(crate) fn refused(error: &ServerError, cluster: bool) -> Outcome {
    let code = error.code();
    let down = |what: &str, next: &str| Outcome::SinkDown(format!("{what}: Redis answered {code} ({next})").into());
    match code {
        "OOM" => down(
            "Redis is out of memory",
            "raise maxmemory of Redis, set `max_len` of the sink for streams, or consume faster",
        ),
        "READONLY" => down("Redis is a read-only replica", "set `url` of the sink to the primary"),
        "LOADING" => down(
            "Redis is loading its data",
            "wait until it is ready; messages are deferred until then",
        ),
        "CLUSTERDOWN" => down("the Redis Cluster is down", "check CLUSTER INFO on its nodes"),
        "MASTERDOWN" => down(
            "the primary of this replica is down",
            "set `url` of the sink to the primary, or restart \
                                                                     the primary",
        ),
        "MISCONF" => down(
            "Redis cannot save its data and accepts no writes",
            "see Redis' log; the disk may be full",
        ),
        "NOREPLICAS" => down(
            "Redis has too few replicas to accept writes",
            "restore the replicas, or lower \
                                                                             min-replicas-to-write",
        ),
        "BUSY" => down("Redis is busy with a script", "stop the script with SCRIPT KILL"),
        "MOVED" | "ASK" if !cluster => down(
            "the server is a node of a Redis Cluster",
            "set `cluster = true` of the sink, or use a server without cluster mode",
        ),
        "MOVED" => down(
            "a node of the Redis Cluster cannot be reached",
            "check CLUSTER NODES; messages for the node are deferred until it is back or a replica takes over",
        ),
        "NOAUTH" => down("Redis requires a password", "set `password` of the sink"),
        "WRONGPASS" => down(
            "Redis refused the user or the password",
            "correct `user` and `password` of the sink",
        ),
        "NOPERM" => down(
            "the user of the Redis sink may not run the command",
            "allow it with ACL SETUSER: +xadd, +rpush, +lpush or +publish",
        ),
        "WRONGTYPE" => Outcome::Permanent(
            "the key holds another type in Redis: Redis answered WRONGTYPE (change `key` of the sink, or delete the key \
             in Redis, then retry the message)"
                .into(),
        ),
        "CROSSSLOT" => Outcome::Permanent(
            "the command has keys in several slots: Redis answered CROSSSLOT (change \
                                           `key` of the sink, then retry the message)"
                .into(),
        ),
        "ASK" | "TRYAGAIN" => Outcome::Temporary(
            format!(
                "a slot of the Redis Cluster is moving: Redis answered {code} (the message is \
                                        tried again)"
            )
            .into(),
        ),
        _ => other(code, error.details().unwrap_or_default()),
    }
}

/// Whether this server accepts no writes, while another one may already be behind the same name: after a failover the
/// connection to the old server stays open.
pub(crate) fn is_of_a_bystander(error: &ServerError) -> bool {
    matches!(error.code(), "READONLY" | "MASTERDOWN" | "LOADING")
}

fn other(code: &str, details: &str) -> Outcome {
    // The rest quotes the arguments of the command, including the payload.
    let details = details.split(", with args").next().unwrap_or_default();
    let details: String = details.chars().take(MOST).collect();
    if details.starts_with("unknown command") {
        return Outcome::SinkDown(
            format!(
                "Redis does not support a command: {details} (use Redis 5 or newer for streams, or another mode \
                     of the sink)"
            )
            .into(),
        );
    }
    Outcome::Temporary(
        format!("Redis refused the message: {code} {details} (see Redis' documentation for this error)").into(),
    )
}

/// The value of an answer, or what its lack means for the message.
pub(crate) fn judged(answer: RedisResult<Value>, cluster: bool) -> Result<Value, Lack> {
    match answer {
        Err(lost) => Err(unanswered(&lost)),
        Ok(Value::ServerError(refusal)) if is_about_a_name(&refusal) => Err(Lack::Denied(denied())),
        Ok(Value::ServerError(refusal)) if is_about_size(&refusal) => Err(Lack::Oversize(oversize(&refusal))),
        Ok(Value::ServerError(refusal)) => Err(Lack::Settled(refused(&refusal, cluster))),
        Ok(value) => Ok(value),
    }
}

/// The lack of an answer. After a timeout the outcome is settled, because a single command does not make a server
/// silent.
fn unanswered(error: &RedisError) -> Lack {
    let unknown = |why: &str| {
        Outcome::Unknown(
            format!("sent to Redis and not confirmed: {why} (the message is sent again with the same id)").into(),
        )
    };
    if error.is_timeout() {
        Lack::Settled(unknown("no answer in time"))
    } else {
        Lack::Broken(unknown(
            "the connection broke; Redis closes it on a command above proto-max-bulk-len or client-query-buffer-limit",
        ))
    }
}

/// The outcome of a message without subscribers.
pub(crate) fn no_receivers() -> Outcome {
    Outcome::Temporary(
        "the Redis channel has no subscribers (start a subscriber, or set `no_receivers = \"delivered\"` of the sink)"
            .into(),
    )
}

/// The outcome of a message with an unexpected answer.
pub(crate) fn strange() -> Outcome {
    Outcome::Unknown("Redis gave an unexpected answer (check for a proxy between the relay and Redis)".into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let bytes = |count: usize| if count == 1 { "byte" } else { "bytes" };
    Outcome::Permanent(
        format!(
            "the message, or one of its headers, has {size} {} and the limit is {limit} {} (raise max_message_bytes \
             of the sink, and proto-max-bulk-len of Redis, then retry the message)",
            bytes(size),
            bytes(limit)
        )
        .into(),
    )
}

pub(crate) fn no_key() -> Outcome {
    Outcome::Permanent(
        "the Redis key of the message is empty (use a default for the field in `key` of the sink, then retry the message)"
            .into(),
    )
}

/// Connecting failed.
pub(crate) fn unreachable(address: &str, error: &io::Error) -> Refusal {
    // An untrusted certificate stays untrusted, so this is not tried again.
    let untrusted = error.kind() == io::ErrorKind::InvalidData;
    let (kind, next) = if untrusted {
        (
            ErrorKind::Denied,
            "check `tls.ca_file` of the sink, and that the certificate is for this host name",
        )
    } else {
        (
            ErrorKind::Unreachable,
            "check that Redis is running there, and check the firewall",
        )
    };
    Refusal {
        kind,
        what: format!("cannot reach Redis at {address}"),
        why: error.to_string(),
        next: next.to_owned(),
    }
}

/// The server did not return the nodes of its cluster.
pub(crate) fn no_cluster(address: &str, error: &ServerError) -> Refusal {
    let denied = error.code() == "NOPERM";
    let why: String = format!("{} {}", error.code(), error.details().unwrap_or_default());
    Refusal {
        kind: if denied {
            ErrorKind::Denied
        } else {
            ErrorKind::Unreachable
        },
        what: format!("Redis at {address} did not return the nodes of its cluster"),
        why: why.trim().chars().take(MOST).collect(),
        next: if denied {
            "allow it with ACL SETUSER: +cluster|slots"
        } else {
            "set `url` of the sink to a node of a Redis Cluster, or remove `cluster = true` of the sink"
        }
        .to_owned(),
    }
}

/// The server refused the login, or the handshake failed.
pub(crate) fn unwelcome(address: &str, error: &RedisError) -> Refusal {
    let code = error.code().unwrap_or_default();
    let denied = matches!(error.kind(), redis::ErrorKind::AuthenticationFailed) || code == "NOAUTH" || code == "NOPERM";
    let (kind, why, next) = if denied {
        let why = format!("it refused the user or the password: {code}");
        (
            ErrorKind::Denied,
            why.trim_end_matches([':', ' ']).to_owned(),
            "correct the user in `url` and `password` of the sink",
        )
    } else if error.is_io_error() || error.is_timeout() {
        let why = "it closed the connection during the handshake".to_owned();
        (
            ErrorKind::Unreachable,
            why,
            "check that Redis runs there, and that both sides use TLS (rediss://) or neither does",
        )
    } else {
        // The server's text: during the handshake it holds neither payload nor password.
        let why: String = format!("{code} {}", error.detail().unwrap_or_default())
            .chars()
            .take(MOST)
            .collect();
        (ErrorKind::Unreachable, why.trim().to_owned(), "see Redis' log")
    };
    Refusal {
        kind,
        what: format!("cannot log in to Redis at {address}"),
        why,
        next: next.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(line: &str) -> ServerError {
        match redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(redis::Value::ServerError(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_refusal_has_its_meaning() {
        for (line, cluster, down, words) in [
            ("OOM command not allowed", false, true, "maxmemory"),
            ("READONLY You can't write", false, true, "primary"),
            ("LOADING Redis is loading", false, true, "wait"),
            ("CLUSTERDOWN The cluster is down", true, true, "CLUSTER INFO"),
            ("MASTERDOWN Link with MASTER", false, true, "primary"),
            ("MISCONF Redis is configured", false, true, "disk"),
            ("NOREPLICAS Not enough", false, true, "min-replicas"),
            ("BUSY Redis is busy", false, true, "SCRIPT KILL"),
            ("MOVED 3999 127.0.0.1:6381", false, true, "cluster = true"),
            ("NOAUTH Authentication required.", false, true, "password"),
            ("WRONGPASS invalid", false, true, "user"),
            (
                "NOPERM this user has no permissions to run the 'xadd' command",
                false,
                true,
                "ACL",
            ),
            (
                "ERR unknown command 'XADD', with args beginning with: 'secret'",
                false,
                true,
                "Redis 5",
            ),
            ("TRYAGAIN Multiple keys", true, false, "moving"),
            ("MOVED 3999 127.0.0.1:6381", true, true, "CLUSTER NODES"),
            ("ASK 3999 127.0.0.1:6381", true, false, "moving"),
            ("ERR something else", false, false, "something else"),
        ] {
            let outcome = refused(&server_error(line), cluster);
            let (is_down, reason) = match &outcome {
                Outcome::SinkDown(reason) => (true, reason),
                Outcome::Temporary(reason) => (false, reason),
                other => panic!("{line}: {other:?}"),
            };
            assert_eq!(is_down, down, "{line}");
            assert!(
                reason.text().contains(words) && reason.text().contains('('),
                "{line}: {}",
                reason.text()
            );
            assert!(!reason.text().contains("secret"), "{}", reason.text());
        }
        let loading = server_error("LOADING Redis is loading");
        assert!(is_of_a_bystander(&loading) && !is_of_a_bystander(&server_error("OOM command not allowed")));
        for line in [
            "WRONGTYPE Operation against a key",
            "ERR Protocol error: invalid bulk length",
            "ERR Elements are too large to be stored",
        ] {
            let lack = judged(Ok(Value::ServerError(server_error(line))), false).unwrap_err();
            assert!(
                matches!(lack.clone().outcome(), Outcome::Permanent(_)),
                "{line}: {lack:?}"
            );
        }
    }

    #[test]
    fn a_key_or_a_channel_that_is_not_ours_is_told_from_a_command_that_is_not() {
        for (line, is_name) in [
            ("NOPERM No permissions to access a key", true),
            ("NOPERM No permissions to access a channel", true),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                true,
            ),
            (
                "NOPERM this user has no permissions to access one of the channels used as arguments",
                true,
            ),
            (
                "NOPERM User sendoff has no permissions to run the 'xadd' command",
                false,
            ),
            (
                "NOPERM this user has no permissions to run the 'xadd' command or its subcommand",
                false,
            ),
        ] {
            let lack = judged(Ok(Value::ServerError(server_error(line))), false).unwrap_err();
            assert_eq!(matches!(lack, Lack::Denied(_)), is_name, "{line}");
            assert_eq!(matches!(lack.outcome(), Outcome::SinkDown(_)), !is_name, "{line}");
        }
    }
}
