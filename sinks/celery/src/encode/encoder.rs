//! Encodes tasks.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sendoff::Result;

use super::body::body;
use super::compress::compress;
use super::headers::headers;
use super::moment::Moment;
use super::{CeleryMessage, Properties};
use crate::CeleryConfig;
use crate::config::{ExchangeType, RouteConfig};
use crate::error::{bad_option, invalid};
use crate::python::Value;
use crate::route::{Router, Wanted};
use crate::task::{TaskCall, TaskOptions};

/// A task that would be held for less is sent.
const SHORTEST_HOLD: Duration = Duration::from_secs(1);
/// The longest hold before a task is checked again: the clock that decided may have been wrong.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 3600);

/// Turns stored tasks into Celery messages.
#[derive(Debug, Clone)]
pub struct Encoder {
    config: CeleryConfig,
    router: Router,
    zone: TimeZone,
    origin: String,
}

impl Encoder {
    /// Creates an encoder with these settings.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for contradictory settings, an unknown time zone, or priority steps that are not
    /// in ascending order.
    pub fn new(config: &CeleryConfig) -> Result<Self> {
        let zone = TimeZone::get(&config.timezone).map_err(|error| {
            invalid(
                format!("timezone of the Celery sink is unknown: {:?}", config.timezone),
                error.to_string(),
                "use a name like UTC or Europe/Berlin",
            )
            .with_source(error)
        })?;
        let steps = &config.redis.priority_steps;
        if steps.is_empty() || !steps.is_sorted_by(|left, right| left < right) {
            return Err(invalid(
                "`priority_steps` of the Celery sink is invalid",
                "they are empty or not in ascending order",
                "use the workers' value, for example [0, 3, 6, 9]",
            ));
        }
        let process = std::process::id();
        Ok(Self {
            router: Router::new(config)?,
            zone,
            origin: config
                .origin
                .clone()
                .unwrap_or_else(|| format!("sendoff{process}@sendoff")),
            config: config.clone(),
        })
    }

    /// The settings of the encoder.
    pub fn config(&self) -> &CeleryConfig {
        &self.config
    }

    /// Encodes a task that is sent at `now`. `now` only decides how much time is left until the task is due and until
    /// it expires.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`], permanently, when the task cannot be sent.
    pub fn encode(&self, call: &TaskCall, now: Timestamp) -> Result<CeleryMessage> {
        let options = &call.options;
        let eta = self.eta(call)?;
        let expires = self.moment(call, "expires")?;
        let wanted = wanted(options)?;
        let delay = eta.as_ref().map(|eta| eta.seconds_from(now));
        let route_name = options.name("route_name")?.filter(|name| !name.is_empty());
        let route_name = route_name.as_deref().unwrap_or(&call.name);
        let route = self.router.route(route_name, &wanted, delay)?;
        let matched = route.matched.as_ref();

        let levels = self.config.repr_maxlevels;
        let mut headers = headers(call, eta.as_ref(), expires.as_ref(), &self.origin, levels)?;
        let serializer = options.name("serializer")?.or_else(|| matched?.serializer.clone());
        let mut body = body(call, serializer.as_deref().unwrap_or(&self.config.serializer))?;
        let compression = options.name("compression")?.or_else(|| matched?.compression.clone());
        if let Some(name) = compression.or_else(|| self.config.compression.clone()) {
            let (content_type, bytes) = compress(&name, &body.bytes)?;
            body.bytes = bytes;
            Value::set(&mut headers, "compression".into(), content_type.into());
        }

        let priority = options
            .whole("priority", u8::MAX.into())?
            .and_then(|priority| u8::try_from(priority).ok());
        let priority = priority.or_else(|| matched?.priority).or(self.config.default_priority);
        Ok(CeleryMessage {
            headers,
            properties: Properties {
                content_type: body.content_type,
                content_encoding: body.content_encoding,
                correlation_id: call.id.clone(),
                reply_to: options.text("reply_to")?.filter(|queue| !queue.is_empty()),
                delivery_mode: self.delivery_mode(options, matched)?,
                priority: priority.unwrap_or(0),
                expiration: expires.map(|expires| expires.millis_from(now)),
                extra: extra(options)?,
            },
            body: body.bytes,
            destination: route.destination,
        })
    }

    /// How long, from `now`, a task stays in the outbox because its eta is further away than `hold_eta`.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn hold(&self, call: &TaskCall, now: Timestamp) -> Result<Option<Duration>> {
        let (Some(lead), Some(eta)) = (self.config.hold_eta, self.eta(call)?) else {
            return Ok(None);
        };
        let hold = eta.seconds_from(now) - lead.as_secs_f64();
        // The clocks of two hosts always differ a little.
        if hold < SHORTEST_HOLD.as_secs_f64() {
            return Ok(None);
        }
        let hold = Duration::try_from_secs_f64(hold).unwrap_or(LONGEST_HOLD);
        Ok(Some(hold.min(LONGEST_HOLD)))
    }

    /// When the task is due. A countdown takes precedence over an eta; a countdown of 0 is ignored.
    fn eta(&self, call: &TaskCall) -> Result<Option<Moment>> {
        match call.options.number("countdown")? {
            Some(seconds) if seconds.as_f64() != Some(0.0) => {
                Moment::after(call.created_at, seconds, "countdown").map(Some)
            }
            _ => match call.options.text("eta")? {
                Some(text) => Moment::read(&text, &self.zone, "eta").map(Some),
                None => Ok(None),
            },
        }
    }

    /// An option that is a number of seconds after the emit, or a time.
    fn moment(&self, call: &TaskCall, option: &str) -> Result<Option<Moment>> {
        match call.options.value(option) {
            None => Ok(None),
            Some(Value::Text(text)) => Moment::read(text, &self.zone, option).map(Some),
            Some(Value::Int(_) | Value::Float(_)) => match call.options.number(option)? {
                Some(seconds) => Moment::after(call.created_at, seconds, option).map(Some),
                None => Ok(None),
            },
            Some(_) => Err(bad_option(option, "a number of seconds or a time")),
        }
    }

    fn delivery_mode(&self, options: &TaskOptions, matched: Option<&RouteConfig>) -> Result<u8> {
        match options.value("delivery_mode") {
            None => {
                let of_route = matched.and_then(|route| route.persistent);
                Ok(if of_route.unwrap_or(self.config.persistent) {
                    2
                } else {
                    1
                })
            }
            Some(Value::Int(mode)) if mode == "1" => Ok(1),
            Some(Value::Int(mode)) if mode == "2" => Ok(2),
            Some(Value::Text(mode)) if mode.is("transient") => Ok(1),
            Some(Value::Text(mode)) if mode.is("persistent") => Ok(2),
            Some(_) => Err(bad_option("delivery_mode", "1 (transient) or 2 (persistent)")),
        }
    }
}

fn wanted(options: &TaskOptions) -> Result<Wanted> {
    let exchange_type = match options.name("exchange_type")?.as_deref() {
        None => None,
        Some("direct") => Some(ExchangeType::Direct),
        Some("topic") => Some(ExchangeType::Topic),
        Some("fanout") => Some(ExchangeType::Fanout),
        Some(_) => return Err(bad_option("exchange_type", "direct, topic or fanout")),
    };
    Ok(Wanted {
        queue: options.name("queue")?.filter(|name| !name.is_empty()),
        exchange: options.name("exchange")?,
        exchange_type,
        routing_key: options.name("routing_key")?,
    })
}

/// The options that Celery does not use itself; it keeps them in the properties, where they are visible on Redis.
fn extra(options: &TaskOptions) -> Result<Vec<(crate::python::Text, Value)>> {
    let mut extra = Vec::new();
    for name in ["argsrepr", "kwargsrepr"] {
        if let Some(text) = options.text(name)? {
            extra.push((name.into(), Value::Text(text)));
        }
    }
    Value::set_all(&mut extra, options.map("properties")?);
    Ok(extra)
}
