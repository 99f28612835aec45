//! Transactions that lock a relay's lanes. The server ends such a transaction if its client is frozen or gone, and
//! other relays can end it by the name of its lock.
//!
//! A client that is stopped, or gone without closing its connection, leaves its transaction open on the server with all
//! its locks. So before each of these transactions the store sets time limits on the server: for waiting for the
//! client, for a lock, and (where the server supports it) for a statement. Each is about a fifth of the lease. After
//! the transaction, an idle connection may stay open for the usual time.
//!
//! Each of these transactions also takes a named lock, whose name has the relay's owner id and a number. A relay that
//! finds another one with an expired lease looks up the connection that holds this lock, and ends it. An account needs
//! no privilege to end its own connections. The lock is held only for the transaction, so no other connection is ever
//! ended. If a server or a proxy has no named locks, only the time limits apply.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sendoff::store::OwnerId;

/// What is assumed of a lease before one is known.
const USUAL_LEASE: Duration = Duration::from_secs(15);

/// How many transactions of one relay can have a name at the same time; more than it has connections for them, because a
/// frozen one keeps its name for a while.
const NAMES: usize = 16;

/// What ends a transaction that was begun with [`Guard::begin`], behind its COMMIT or ROLLBACK.
const END: &str = "; DO RELEASE_ALL_LOCKS(); SET SESSION wait_timeout = DEFAULT";
/// The same where there are no locks by name.
const END_NAMELESS: &str = "; SET SESSION wait_timeout = DEFAULT";

/// What the store knows about leases, and about the server's locks by name.
#[derive(Debug)]
pub(crate) struct Guard {
    lease_millis: AtomicU64,
    /// How long to wait for a lock at most, in seconds.
    lock_wait: u64,
    has_names: AtomicBool,
}

impl Guard {
    pub(crate) fn new(lock_wait: u64) -> Self {
        let guard = Self {
            lease_millis: AtomicU64::new(0),
            lock_wait,
            has_names: AtomicBool::new(true),
        };
        guard.learn(USUAL_LEASE);
        guard
    }

    /// The relays of this store have leases of this length.
    pub(crate) fn learn(&self, lease: Duration) {
        let millis = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.lease_millis.store(millis, Ordering::Relaxed);
    }

    /// Whether transactions have names. Not where the server said that it has no locks by name.
    pub(crate) fn has_names(&self) -> bool {
        self.has_names.load(Ordering::Relaxed)
    }

    /// The server has no locks by name.
    pub(crate) fn give_up_names(&self) {
        if self.has_names.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                event = "no_named_locks",
                "server has no named locks: a relay that stopped responding is replaced only after its connection times out"
            );
        }
    }

    /// What comes behind the COMMIT or ROLLBACK of a transaction that begins now.
    pub(crate) fn end(&self) -> &'static str {
        if self.has_names() { END } else { END_NAMELESS }
    }

    /// Begins a transaction of a relay. In a comment what only MariaDB knows: there these come before `wait_timeout`. Time
    /// for a statement and for the client together are not longer than the lease, but for rounding.
    pub(crate) fn begin(&self, owner: Option<OwnerId>) -> String {
        let lease = Duration::from_millis(self.lease_millis.load(Ordering::Relaxed));
        let idle = (lease / 5).as_secs().clamp(1, 3600);
        let lock_wait = self.lock_wait.min(idle);
        let statement = lease
            .saturating_sub(Duration::from_secs(idle))
            .as_secs_f64()
            .clamp(1.0, 36_000.0);
        let mut sql = format!(
            "SET SESSION wait_timeout = {idle}, net_read_timeout = {idle}, net_write_timeout = {idle}, \
             innodb_lock_wait_timeout = {lock_wait} /*M!100600 , idle_transaction_timeout = {idle}, \
             idle_write_transaction_timeout = {idle}, idle_readonly_transaction_timeout = {idle}, \
             max_statement_time = {statement:.3} */; START TRANSACTION"
        );
        if let Some(owner) = owner.filter(|_| self.has_names()) {
            // The first that is free: the server looks at the others only if it has to.
            let takes: Vec<String> = names(&owner.to_string())
                .map(|name| format!("GET_LOCK({name}, 0) = 1"))
                .collect();
            sql += &format!("; DO ({})", takes.join(" OR "));
        }
        sql
    }
}

/// Asks which connections have a transaction of this owner: a column each, NULL where there is none.
pub(crate) fn sessions_of(owner: &str) -> String {
    let uses: Vec<String> = names(owner).map(|name| format!("IS_USED_LOCK({name})")).collect();
    format!("SELECT {}", uses.join(", "))
}

/// As literals. Owners are random, so two outboxes on one server have different ones.
fn names(owner: &str) -> impl Iterator<Item = String> {
    // It is a UUID; whatever else may stand in the table must not mean anything here.
    let owner: String = owner.chars().filter(|c| c.is_ascii_hexdigit() || *c == '-').collect();
    (0..NAMES).map(move |number| format!("'sendoff {owner} {number}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_transaction_fit_into_the_lease() {
        for (lease, idle, statement) in [
            (Duration::from_millis(100), 1, "1.000"),
            (Duration::from_secs(2), 1, "1.000"),
            (Duration::from_secs(10), 2, "8.000"),
            (Duration::from_secs(60), 12, "48.000"),
        ] {
            let guard = Guard::new(4);
            guard.learn(lease);
            let sql = guard.begin(None);
            assert!(sql.contains(&format!(" wait_timeout = {idle},")), "{sql}");
            assert!(
                sql.contains(&format!("innodb_lock_wait_timeout = {} ", idle.min(4))),
                "{sql}"
            );
            assert!(sql.contains(&format!("max_statement_time = {statement} ")), "{sql}");
            assert!(sql.ends_with("START TRANSACTION"), "{sql}");
        }
    }

    #[test]
    fn a_name_is_no_longer_than_names_may_be_and_nothing_of_it_is_sql() {
        let owner = OwnerId::random().to_string();
        assert!(names(&owner).all(|name| name.len() <= 64 + 2));
        assert!(names("' OR 1 -- ").all(|name| name.matches('\'').count() == 2));
        let guard = Guard::new(4);
        assert!(guard.begin(Some(OwnerId::random())).contains("GET_LOCK"));
        guard.give_up_names();
        assert!(!guard.begin(Some(OwnerId::random())).contains("GET_LOCK"));
    }
}
