//! Calls the script, and maps errors of Redis.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{FromRedisValue, RedisError};
use sendoff::{Error, ErrorKind, Result};
use serde::Serialize;
use tokio::sync::OnceCell;

/// One script: the concatenated files.
const LUA: &str = concat!(
    include_str!("lua/begin.lua"),
    include_str!("lua/rooms.lua"),
    include_str!("lua/order.lua"),
    include_str!("lua/lease.lua"),
    include_str!("lua/emit.lua"),
    include_str!("lua/read.lua"),
    include_str!("lua/settle.lua"),
    include_str!("lua/operate.lua"),
    include_str!("lua/call.lua"),
);

/// The script, and the server that runs it.
#[derive(Clone)]
pub(crate) struct Script {
    script: Arc<redis::Script>,
    client: redis::Client,
    /// Opened by the first call, so that a store can be created while its server is down.
    connection: Arc<OnceCell<ConnectionManager>>,
    prefix: Arc<str>,
}

impl Script {
    pub(crate) fn new(url: &str, prefix: String) -> Result<Self> {
        let client = redis::Client::open(url).map_err(|_| {
            Error::new(ErrorKind::Invalid, "the URL of Redis cannot be read")
                .because("it has another form than redis://user:password@host:6379/0")
                .next_step("correct the URL")
        })?;
        Ok(Self {
            script: Arc::new(redis::Script::new(LUA)),
            client,
            connection: Arc::new(OnceCell::new()),
            prefix: prefix.into(),
        })
    }

    /// One verb of the script: a transaction.
    pub(crate) async fn call<T: FromRedisValue>(&self, verb: &str, args: &impl Serialize) -> Result<T> {
        self.call_with(verb, args, &[]).await
    }

    /// The same, with bytes that the arguments refer to by index.
    pub(crate) async fn call_with<T: FromRedisValue>(
        &self,
        verb: &str,
        args: &impl Serialize,
        bytes: &[Vec<u8>],
    ) -> Result<T> {
        let what = format!("Redis could not {}", verb.replace('_', " "));
        let args = serde_json::to_string(args).map_err(|error| {
            Error::new(ErrorKind::Invalid, &what)
                .because("an argument cannot be written as JSON")
                .with_source(error)
        })?;
        let connect = || self.client.get_connection_manager_with_config(settings());
        let connection = self.connection.get_or_try_init(connect).await;
        let mut connection = connection.map_err(|error| meant(&what, error))?.clone();
        let mut call = self.script.prepare_invoke();
        call.key(&*self.prefix).arg(verb).arg(args);
        for bytes in bytes {
            call.arg(bytes.as_slice());
        }
        call.invoke_async(&mut connection)
            .await
            .map_err(|error| meant(&what, error))
    }
}

/// A call may wait for the server's disk. If the server is down, the caller decides how long to wait.
fn settings() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_number_of_retries(1)
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(Duration::from_secs(20)))
}

/// Maps an error of Redis to a store error: whether to retry, and what to do.
fn meant(what: &str, error: RedisError) -> Error {
    let code = error.code().unwrap_or_default();
    let (kind, next) = match code {
        "LEASELOST" => (ErrorKind::LeaseLost, "register again"),
        "RESERVATIONLOST" => (
            ErrorKind::Busy,
            "the transaction was open for too long and nothing was written: emit again",
        ),
        "NOPERM" | "NOAUTH" | "WRONGPASS" => (
            ErrorKind::Denied,
            "check the password, and the permissions of the store's user (ACL)",
        ),
        "LOADING" | "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "MISCONF" | "OOM" | "BUSY" => {
            (ErrorKind::Unreachable, "check the server's log; the call is retried")
        }
        _ if error.is_io_error() || error.is_connection_dropped() || error.is_timeout() => (
            ErrorKind::Unreachable,
            "check that Redis is running and that the URL is correct",
        ),
        _ => (ErrorKind::Backend, "see the cause, the error of Redis"),
    };
    // Only the code: the rest of an answer may quote what was sent.
    let why = if code.is_empty() {
        error.category().to_owned()
    } else {
        code.to_owned()
    };
    Error::new(kind, what).because(why).next_step(next).with_source(error)
}
