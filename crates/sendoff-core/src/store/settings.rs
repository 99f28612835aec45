//! Settings that every store has.

use std::time::Duration;

/// How long a store keeps rows, and what counts for all producers and workers. Each store's configuration has these
/// settings and the same methods to set them: see [`store_settings!`](crate::store_settings).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreSettings {
    /// How long delivered messages are kept; `None`: they are deleted when they are delivered.
    pub retention: Option<Duration>,
    /// How long dead letters are kept; `None`: until an operator acts. Dead letters that block their key are never deleted.
    pub dead_retention: Option<Duration>,
    /// How long idempotency keys are kept; `None`: the setting in the tables, 7 days by default.
    pub dedup_window: Option<Duration>,
    /// How long inbox records are kept; `None`: the setting in the tables, 30 days by default.
    pub inbox_retention: Option<Duration>,
    /// How often a job is tried that has no limit of its own; `None`: the setting in the tables, 5 by default.
    pub job_max_attempts: Option<u16>,
}

impl StoreSettings {
    /// Names and values of the settings in the tables, for those that are configured: the deduplication window and the
    /// inbox retention in whole seconds, at least 1, and the attempts of a job, at least 1.
    pub fn in_tables(&self) -> Vec<(&'static str, String)> {
        let seconds = |window: Duration| window.as_secs().max(1).to_string();
        let attempts = self.job_max_attempts.map(|most| most.max(1).to_string());
        let settings = [
            ("dedup_window_seconds", self.dedup_window.map(seconds)),
            ("inbox_retention_seconds", self.inbox_retention.map(seconds)),
            ("job_max_attempts", attempts),
        ];
        settings
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// Gives the configuration of a store the methods that set its fields `names` and `settings` ([`StoreSettings`]); with
/// `timeouts` also those for `connect_timeout` and `statement_timeout`, of a store with a server.
///
/// ```
/// use sendoff::emit::Names;
/// use sendoff::store::StoreSettings;
///
/// #[derive(Default)]
/// struct MyConfig {
///     names: Names,
///     settings: StoreSettings,
/// }
///
/// sendoff::store_settings!(MyConfig);
///
/// let config = MyConfig::default().job_max_attempts(Some(3));
/// assert_eq!(config.settings.in_tables(), [("job_max_attempts", "3".to_owned())]);
/// ```
#[macro_export]
macro_rules! store_settings {
    ($config:ty) => {
        impl $config {
            /// Sets the table names.
            #[must_use]
            pub fn names(mut self, names: $crate::emit::Names) -> Self {
                self.names = names;
                self
            }

            /// Sets all of what every store has.
            #[must_use]
            pub fn settings(mut self, settings: $crate::store::StoreSettings) -> Self {
                self.settings = settings;
                self
            }

            /// Keeps delivered messages this long.
            #[must_use]
            pub fn retention(mut self, retention: Option<std::time::Duration>) -> Self {
                self.settings.retention = retention;
                self
            }

            /// Keeps dead letters this long.
            #[must_use]
            pub fn dead_retention(mut self, retention: Option<std::time::Duration>) -> Self {
                self.settings.dead_retention = retention;
                self
            }

            /// Keeps idempotency keys this long. Written into the tables by
            /// `MigrateStore::write_retention`, it counts for all producers.
            #[must_use]
            pub fn dedup_window(mut self, window: Option<std::time::Duration>) -> Self {
                self.settings.dedup_window = window;
                self
            }

            /// Keeps inbox records this long, in the same way.
            #[must_use]
            pub fn inbox_retention(mut self, retention: Option<std::time::Duration>) -> Self {
                self.settings.inbox_retention = retention;
                self
            }

            /// Tries a job that has no limit of its own this often, in the same way.
            #[must_use]
            pub fn job_max_attempts(mut self, most: Option<u16>) -> Self {
                self.settings.job_max_attempts = most;
                self
            }
        }
    };
    ($config:ty, timeouts) => {
        $crate::store_settings!($config);

        impl $config {
            /// Sets the time limit for connecting.
            #[must_use]
            pub fn connect_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.connect_timeout = timeout;
                self
            }

            /// Sets the time limit for one call.
            #[must_use]
            pub fn statement_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.statement_timeout = timeout;
                self
            }
        }
    };
}
