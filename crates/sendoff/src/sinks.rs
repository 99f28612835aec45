//! The sinks of a relay: one per broker or protocol, behind the feature of its name.
//!
//! The sinks implement the trait [`Sink`](crate::Sink).

#[cfg(feature = "celery")]
#[doc(inline)]
pub use sendoff_sink_celery as celery;

#[cfg(feature = "file")]
#[doc(inline)]
pub use sendoff_sink_file as file;

#[cfg(feature = "handlers")]
#[doc(inline)]
pub use sendoff_sink_handlers as handlers;

#[cfg(feature = "http")]
#[doc(inline)]
pub use sendoff_sink_http as http;

#[cfg(feature = "kafka")]
#[doc(inline)]
pub use sendoff_sink_kafka as kafka;

#[cfg(feature = "mqtt")]
#[doc(inline)]
pub use sendoff_sink_mqtt as mqtt;

#[cfg(feature = "nats")]
#[doc(inline)]
pub use sendoff_sink_nats as nats;

#[cfg(feature = "rabbitmq")]
#[doc(inline)]
pub use sendoff_sink_rabbitmq as rabbitmq;

#[cfg(feature = "redis")]
#[doc(inline)]
pub use sendoff_sink_redis as redis;

#[cfg(feature = "stdout")]
#[doc(inline)]
pub use sendoff_sink_stdout as stdout;
