//! Calls of the script, and what errors of Redis mean.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{FromRedisValue, RedisError};
use sendoff::{Error, ErrorKind, Result};
use serde::Serialize;
use tokio::sync::OnceCell;

/// One script: each file goes on where the one before it ended.
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
    /// Opened by the first call, so that a store can be made while its server is away.
    connection: Arc<OnceCell<ConnectionManager>>,
    prefix: Arc<str>,
}

impl Script {
    pub(crate) fn new(url: &str, prefix: String) -> Result<Self> {
        let client = redis::Client::open(url).map_err(|_| {
            Error::new(ErrorKind::Invalid, "the URL of Redis cannot be read")
                .because("it is not of the form that is needed")
                .next_step("write it like redis://user:password@host:6379/0")
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

    /// The same, with bytes that the arguments speak of by their numbers.
    pub(crate) async fn call_with<T: FromRedisValue>(
        &self,
        verb: &str,
        args: &impl Serialize,
        bytes: &[Vec<u8>],
    ) -> Result<T> {
        let what = format!("Redis could not {}", verb.replace('_', " "));
        let args = serde_json::to_string(args).map_err(|error| {
            Error::new(ErrorKind::Invalid, &what)
                .because("an argument is no JSON")
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

/// A call may have to wait for the server's disk; a server that is away is the caller's to wait for.
fn settings() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_number_of_retries(1)
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(Duration::from_secs(20)))
}

/// An error of Redis in the words of a store: whether trying again is right, and what to do.
fn meant(what: &str, error: RedisError) -> Error {
    let code = error.code().unwrap_or_default();
    let (kind, next) = match code {
        "LEASELOST" => (ErrorKind::LeaseLost, "enlist again"),
        "RESERVATIONLOST" => (
            ErrorKind::Busy,
            "the transaction was open for too long and nothing was written: emit again",
        ),
        "NOPERM" | "NOAUTH" | "WRONGPASS" => (ErrorKind::Denied, "give the user of the store its rights"),
        "LOADING" | "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "MISCONF" | "OOM" | "BUSY" => {
            (ErrorKind::Unreachable, "see the server; it is tried again")
        }
        _ if error.is_io_error() || error.is_connection_dropped() || error.is_timeout() => {
            (ErrorKind::Unreachable, "check that Redis runs, and the URL")
        }
        _ => (ErrorKind::Backend, "read the error of Redis"),
    };
    // Nothing but the code: the rest of an answer may repeat what was sent.
    let why = if code.is_empty() {
        error.category().to_owned()
    } else {
        code.to_owned()
    };
    Error::new(kind, what).because(why).next_step(next).with_source(error)
}
