//! Repeats transactions that conflicted with another one, a few times, with pauses in between.

use std::time::Duration;

use sendoff::Error;

use crate::error::is_conflict;

/// How often a transaction is begun before its error reaches the caller.
const MOST: u32 = 12;

/// Counts the attempts of one transaction.
#[derive(Debug, Default)]
pub struct Attempts(u32);

impl Attempts {
    /// Whether to try again after this error. It waits a growing, random time before it returns, so that conflicting
    /// transactions do not conflict again.
    pub async fn again(&mut self, error: &Error) -> bool {
        self.0 += 1;
        if self.0 >= MOST || !is_conflict(error) {
            return false;
        }
        tracing::debug!(event = "transaction_conflict", attempt = self.0, %error, "transaction conflicted with another one; will retry");
        let longest = 1_u64 << self.0.min(7);
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..=longest * 1000))).await;
        true
    }
}

/// Runs `$work`, which uses `$connection`, in a transaction out of `$pool`, again where it met another one. With `$owner` in the
/// name of that relay: see [`crate::guard`].
macro_rules! transact {
    ($pool:expr, $what:expr, $connection:ident => $work:expr) => {
        $crate::conflict::transact!(@ $pool.begin($what), $what, $connection => $work)
    };
    ($pool:expr, $owner:expr, $what:expr, $connection:ident => $work:expr) => {
        $crate::conflict::transact!(@ $pool.begin_for($what, $owner), $what, $connection => $work)
    };
    (@ $begin:expr, $what:expr, $connection:ident => $work:expr) => {{
        let mut attempts = $crate::conflict::Attempts::default();
        loop {
            let mut $connection = $begin.await?;
            let done: sendoff::Result<_> = match $work {
                Ok(done) => $connection.commit($what).await.map(|()| done),
                Err(error) => Err(error),
            };
            match done {
                Ok(done) => {
                    $connection.give_back();
                    break Ok(done);
                }
                Err(error) => {
                    // Before the pause: after a lock timeout the transaction still has its locks.
                    $connection.roll_back($what).await;
                    if !attempts.again(&error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(crate) use transact;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::from_driver;

    fn server_error(code: u16) -> Error {
        let error = mysql_async::ServerError {
            code,
            message: "x".to_owned(),
            state: "HY000".to_owned(),
        };
        from_driver("x", mysql_async::Error::Server(error))
    }

    #[tokio::test]
    async fn deadlocks_and_lock_timeouts_are_tried_again_and_not_for_ever() {
        for code in [1213, 1205, 3058] {
            let (mut attempts, mut tries) = (Attempts::default(), 1);
            while attempts.again(&server_error(code)).await {
                tries += 1;
            }
            assert_eq!(tries, MOST);
        }
        assert!(!Attempts::default().again(&server_error(1146)).await);
    }
}
