//! Settings for the RabbitMQ and Redis clients.

use sendoff::Result;
use sendoff_sink_rabbitmq::publisher::Settings;
use sendoff_sink_redis as redis;

use super::CeleryConfig;
use super::url::BrokerUrl;
use crate::Encoder;
use crate::error::invalid;

/// The settings of the connection.
#[derive(Debug)]
pub(crate) enum Broker {
    RabbitMq(Settings),
    Redis(redis::RedisConfig),
}

impl CeleryConfig {
    /// Checks the settings of the Celery sink.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        Encoder::new(self)?;
        match self.broker()? {
            Broker::RabbitMq(settings) => settings.validate(),
            Broker::Redis(config) => config.validate(),
        }
    }

    /// The broker; the scheme of the URL decides.
    pub(crate) fn broker(&self) -> Result<Broker> {
        let Some(url) = &self.url else {
            return Err(invalid(
                "`url` of the Celery sink is missing",
                "the URL of the workers' broker is required",
                "set `url` to the application's broker_url, for example redis://host:6379/0",
            ));
        };
        let BrokerUrl {
            address,
            tls,
            heartbeat,
            external_auth,
        } = BrokerUrl::read(url)?;
        let tls = self.tls.clone().or(tls);
        if address.reveal().scheme().starts_with("amqp") {
            let mut settings = Settings::new(address);
            settings.password = self.password.clone();
            settings.tls = tls;
            settings.heartbeat = heartbeat.unwrap_or(settings.heartbeat);
            settings.external_auth = external_auth;
            settings.connect_timeout = self.connect_timeout;
            settings.confirm_timeout = self.confirm_timeout;
            settings.max_message_bytes = self.max_message_bytes.unwrap_or(settings.max_message_bytes);
            return Ok(Broker::RabbitMq(settings));
        }
        let mut config = redis::RedisConfig::new(address.reveal().as_str())?;
        config.mode = redis::Mode::List;
        config.password = self.password.clone();
        config.tls = tls;
        config.connect_timeout = self.connect_timeout;
        config.answer_timeout = self.confirm_timeout;
        config.max_message_bytes = self.max_message_bytes.unwrap_or(config.max_message_bytes);
        Ok(Broker::Redis(config))
    }
}
