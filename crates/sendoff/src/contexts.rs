//! Sources of [`Context`](crate::Context): what emit adds to the headers of every message.
//!
//! One feature each: `log-context`, `opentelemetry`, `sentry`.

#[cfg(feature = "log-context")]
#[doc(inline)]
pub use sendoff_log_context as log;

#[cfg(feature = "opentelemetry")]
#[doc(inline)]
pub use sendoff_opentelemetry as opentelemetry;

#[cfg(feature = "sentry")]
#[doc(inline)]
pub use sendoff_sentry as sentry;
