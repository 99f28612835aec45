//! What an answer of Redis means for a message, in words for an operator.

use std::io;

use redis::{RedisError, RedisResult, ServerError, Value};
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::{Fate, Refusal};

/// The most of the server's own words that a reason repeats.
const MOST: usize = 200;

/// Why a command has no answer that could be used, and what that means for a message that hangs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// This, whatever else was sent.
    Settled(Outcome),
    /// The user may run the command, and not on this key or channel: others may do.
    Denied(Reason),
    /// An argument of the command is larger than the server allows.
    Oversize(Reason),
    /// The connection broke while it was on its way, perhaps because of another command.
    Broken(Outcome),
}

impl Lack {
    /// For a message whose key is its own.
    pub fn fate(self) -> Fate {
        match self {
            Self::Settled(outcome) => Fate::Settled(outcome),
            Self::Denied(reason) => Fate::Settled(Outcome::Temporary(reason)),
            Self::Oversize(reason) => Fate::Settled(Outcome::Permanent(reason)),
            Self::Broken(outcome) => Fate::Broken(outcome),
        }
    }

    /// The same, for a message that was sent alone.
    pub fn outcome(self) -> Outcome {
        match self.fate() {
            Fate::Settled(outcome) | Fate::Broken(outcome) => outcome,
        }
    }
}

/// Whether the user may run the command, and not on its key or channel. Servers have no code for it, only words: "No permissions
/// to access a key", and, before version 7, "to access one of the keys used as arguments".
fn is_about_a_name(error: &ServerError) -> bool {
    error.code() == "NOPERM"
        && error
            .details()
            .is_some_and(|details| details.contains("permissions to access"))
}

/// Whether the command can never be carried out because of its size. After a "Protocol error" the server closes the connection.
fn is_about_size(error: &ServerError) -> bool {
    let is = |details: &str| details.starts_with("Protocol error") || details.contains("too large to be stored");
    error.details().is_some_and(is)
}

fn oversize(error: &ServerError) -> Reason {
    let details: String = error.details().unwrap_or_default().chars().take(MOST).collect();
    let next =
        "raise proto-max-bulk-len of Redis, or store the data elsewhere and send a reference, then retry the message";
    format!("the message is too large for Redis: {details} ({next})").into()
}

fn denied() -> Reason {
    "the user of the Redis sink may not write to this key or channel: Redis answered NOPERM (allow it with ACL SETUSER: ~keys, \
     &channels; or change key, or the topic of the message)"
        .into()
}

/// What becomes of a message that the server refused. None of these has arrived.
pub(crate) fn refused(error: &ServerError, cluster: bool) -> Outcome {
    let code = error.code();
    let down = |what: &str, next: &str| Outcome::SinkDown(format!("{what}: Redis answered {code} ({next})").into());
    match code {
        "OOM" => down(
            "Redis is out of memory",
            "raise maxmemory, set max_len for streams, or let consumers catch up",
        ),
        "READONLY" => down("Redis is a read-only replica", "give the URL of the primary"),
        "LOADING" => down("Redis is loading its data", "wait; messages go on by themselves"),
        "CLUSTERDOWN" => down("the Redis Cluster is down", "see CLUSTER INFO on its nodes"),
        "MASTERDOWN" => down("the primary of this replica is down", "give the URL of the primary, or wait for it"),
        "MISCONF" => down("Redis cannot save its data and takes no writes", "see its log; its disk may be full"),
        "NOREPLICAS" => down("Redis has too few replicas to take writes", "see min-replicas-to-write there"),
        "BUSY" => down("Redis is busy with a script", "end it with SCRIPT KILL"),
        "MOVED" | "ASK" if !cluster => down(
            "the server is a node of a Redis Cluster",
            "set cluster = true, or give the URL of a server without cluster mode",
        ),
        "MOVED" => down(
            "a node of the Redis Cluster cannot be reached",
            "see CLUSTER NODES; its messages go on when it is back, or when a replica takes its place",
        ),
        "NOAUTH" => down("Redis wants a password", "set password"),
        "WRONGPASS" => down("Redis does not know this user and password", "correct them in the settings"),
        "NOPERM" => down(
            "the user of the Redis sink may not do this",
            "let it write with ACL SETUSER: +xadd, +rpush, +lpush or +publish",
        ),
        "WRONGTYPE" => Outcome::Permanent(
            "the key holds another type in Redis: it answered WRONGTYPE (use another key, or remove what is there, then \
             retry the message)"
                .into(),
        ),
        "CROSSSLOT" => Outcome::Permanent("Redis answered CROSSSLOT (use another key, then retry the message)".into()),
        "ASK" | "TRYAGAIN" => {
            Outcome::Temporary(format!("a slot of the Redis Cluster is moving: Redis answered {code} (it is tried again)").into())
        }
        _ => other(code, error.details().unwrap_or_default()),
    }
}

/// Whether the server can take no writes as long as it is what it is, while another one may be behind the same name by now: after
/// a failover the connection to the server of before is still there.
pub(crate) fn is_of_a_bystander(error: &ServerError) -> bool {
    matches!(error.code(), "READONLY" | "MASTERDOWN" | "LOADING")
}

fn other(code: &str, details: &str) -> Outcome {
    // What follows are the arguments of the command, payload and all.
    let details = details.split(", with args").next().unwrap_or_default();
    let details: String = details.chars().take(MOST).collect();
    if details.starts_with("unknown command") {
        return Outcome::SinkDown(
            format!("the server lacks a command: {details} (use Redis 5 or newer for streams, or another mode)").into(),
        );
    }
    Outcome::Temporary(format!("Redis refused the message: {code} {details} (see the docs of this error)").into())
}

/// What an answer means for a message that hangs on it.
pub(crate) fn judged(answer: RedisResult<Value>, cluster: bool) -> Result<Value, Lack> {
    match answer {
        Err(lost) => Err(unanswered(&lost)),
        Ok(Value::ServerError(refusal)) if is_about_a_name(&refusal) => Err(Lack::Denied(denied())),
        Ok(Value::ServerError(refusal)) if is_about_size(&refusal) => Err(Lack::Oversize(oversize(&refusal))),
        Ok(Value::ServerError(refusal)) => Err(Lack::Settled(refused(&refusal, cluster))),
        Ok(value) => Ok(value),
    }
}

/// What becomes of a message that has no answer. A server that is silent is not made so by one command.
fn unanswered(error: &RedisError) -> Lack {
    let unknown = |why: &str| {
        Outcome::Unknown(format!("sent to Redis and not confirmed: {why} (it is sent again with the same id)").into())
    };
    if error.is_timeout() {
        Lack::Settled(unknown("no answer came in time"))
    } else {
        Lack::Broken(unknown(
            "the connection broke; Redis closes it on a command above proto-max-bulk-len or client-query-buffer-limit",
        ))
    }
}

/// What becomes of a message that nobody listens for.
pub(crate) fn no_receivers() -> Outcome {
    Outcome::Temporary("nobody listens to the channel (subscribe, or set no_receivers = \"delivered\")".into())
}

/// What becomes of a message whose answer makes no sense.
pub(crate) fn strange() -> Outcome {
    Outcome::Unknown("Redis gave an answer that the command does not have (check what is between)".into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let bytes = |count: usize| if count == 1 { "byte" } else { "bytes" };
    Outcome::Permanent(
        format!(
            "the message, or a header of it, has {size} {} and the limit is {limit} {} (raise max_message_bytes, and proto-max-bulk-len of \
             Redis, then retry it)",
            bytes(size),
            bytes(limit)
        )
        .into(),
    )
}

pub(crate) fn no_key() -> Outcome {
    Outcome::Permanent(
        "the key of the message is empty (give the field in the template a default, then retry it)".into(),
    )
}

/// Why there is no connection.
pub(crate) fn unreachable(address: &str, error: &io::Error) -> Refusal {
    // A certificate that is not to be trusted does not get better by trying again.
    let untrusted = error.kind() == io::ErrorKind::InvalidData;
    let (kind, next) = if untrusted {
        (
            ErrorKind::Denied,
            "check tls.ca_file, and that the certificate is for this host name",
        )
    } else {
        (
            ErrorKind::Unreachable,
            "check that Redis runs there and that the firewall lets us through",
        )
    };
    Refusal {
        kind,
        what: format!("Redis at {address} cannot be reached"),
        why: error.to_string(),
        next: next.to_owned(),
    }
}

/// Why a server does not tell which nodes there are.
pub(crate) fn no_cluster(address: &str, error: &ServerError) -> Refusal {
    let denied = error.code() == "NOPERM";
    let why: String = format!("{} {}", error.code(), error.details().unwrap_or_default());
    Refusal {
        kind: if denied {
            ErrorKind::Denied
        } else {
            ErrorKind::Unreachable
        },
        what: format!("Redis at {address} does not tell the nodes of its cluster"),
        why: why.trim().chars().take(MOST).collect(),
        next: if denied {
            "let the user ask with ACL SETUSER: +cluster|slots"
        } else {
            "give the URL of a node of a Redis Cluster, or leave out cluster = true"
        }
        .to_owned(),
    }
}

/// Why the server does not want us.
pub(crate) fn unwelcome(address: &str, error: &RedisError) -> Refusal {
    let code = error.code().unwrap_or_default();
    let denied = matches!(error.kind(), redis::ErrorKind::AuthenticationFailed) || code == "NOAUTH" || code == "NOPERM";
    let (kind, why, next) = if denied {
        let why = format!("it wants another user or password: {code}");
        (
            ErrorKind::Denied,
            why.trim_end_matches([':', ' ']).to_owned(),
            "correct the user in the URL and the password",
        )
    } else if error.is_io_error() || error.is_timeout() {
        let why = "it ended the connection while we introduced ourselves".to_owned();
        (
            ErrorKind::Unreachable,
            why,
            "check that Redis runs there; without TLS on both sides or on none this happens, too",
        )
    } else {
        // Its own words: those of a handshake hold neither payload nor password.
        let why: String = format!("{code} {}", error.detail().unwrap_or_default())
            .chars()
            .take(MOST)
            .collect();
        (ErrorKind::Unreachable, why.trim().to_owned(), "see the log of Redis")
    };
    Refusal {
        kind,
        what: format!("Redis at {address} does not let us in"),
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
