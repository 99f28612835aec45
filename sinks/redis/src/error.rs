//! What an answer of Redis means for a message, in words for an operator.

use std::io;

use redis::{RedisError, RedisResult, ServerError, Value};
use sendoff::{ErrorKind, Outcome};
use sendoff_wire::Refusal;

/// The most of the server's own words that a reason repeats.
const MOST: usize = 200;

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
            "let it write with ACL SETUSER: +xadd, +rpush, +lpush or +publish, and the keys or channels",
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
pub(crate) fn judged(answer: RedisResult<Value>, cluster: bool) -> Result<Value, Outcome> {
    match answer {
        Err(lost) => Err(unanswered(&lost)),
        Ok(Value::ServerError(refusal)) => Err(refused(&refusal, cluster)),
        Ok(value) => Ok(value),
    }
}

/// What becomes of a message that has no answer.
fn unanswered(error: &RedisError) -> Outcome {
    let why = if error.is_timeout() {
        "no answer came in time"
    } else {
        "the connection broke"
    };
    Outcome::Unknown(format!("sent to Redis and not confirmed: {why} (it is sent again with the same id)").into())
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
            "the message has {size} {} and the limit is {limit} {} (raise max_message_bytes, and proto-max-bulk-len of \
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
            ("NOPERM this user", false, true, "ACL"),
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
        let outcome = refused(&server_error("WRONGTYPE Operation against a key"), false);
        assert!(matches!(outcome, Outcome::Permanent(_)), "{outcome:?}");
    }
}
