//! Connecting to a broker.

use std::sync::Arc;

use bytes::BytesMut;
use mqtt_protocol_core::mqtt::packet::{Packet, v3_1_1, v5_0};
use mqtt_protocol_core::mqtt::result_code::MqttError;
use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_wire::{Connect, Refusal};

use crate::link::{Link, Terms};
use crate::packet::{Incoming, put};
use crate::stream::Stream;
use crate::{MqttConfig, Version, error};

/// How many unconfirmed messages a 3.1.1 broker gets; it cannot report a limit. Mosquitto and others allow twenty.
const WINDOW_311: u16 = 20;
const WINDOW_5: u16 = 1000;
const LONGEST_TEXT: usize = 65_535;

pub(crate) struct Connector(pub(crate) Arc<MqttConfig>);

impl Connect for Connector {
    type Connection = Link;

    async fn connect(&self) -> Result<Link, Refusal> {
        let config = &self.0;
        let mut stream = Stream::open(config).await?;
        put_connect(config, &mut stream.out)?;
        let answer = stream
            .next()
            .await
            .map_err(|broken| error::turned_away(&config.url, &broken))?;
        let Incoming::ConnAck { code, told } = answer else {
            return Err(error::not_mqtt(&config.url));
        };
        if code != 0 {
            return Err(error::refused(
                &config.url,
                config.version,
                code,
                told.reason.as_deref(),
            ));
        }
        if told.maximum_qos.is_some_and(|most| most < u8::from(config.qos)) {
            return Err(error::qos_too_high(&config.url, u8::from(config.qos)));
        }
        if config.retain && told.retain_available == Some(0) {
            return Err(error::no_retain(&config.url));
        }
        let window = match config.version {
            // The default of MQTT 5 is 65535.
            Version::V5 => told
                .receive_maximum
                .unwrap_or(u16::MAX)
                .min(config.max_in_flight.unwrap_or(WINDOW_5)),
            Version::V311 => config.max_in_flight.unwrap_or(WINDOW_311),
        };
        let told_size = told.maximum_packet_size.and_then(|size| usize::try_from(size).ok());
        let terms = Terms {
            window: usize::from(window.max(1)),
            largest: [told_size, config.max_packet_bytes].into_iter().flatten().min(),
            keep_alive: told.keep_alive,
        };
        Ok(Link::new(stream, terms))
    }

    fn address(&self) -> String {
        self.0.url.to_string()
    }

    fn is_usable(&self, link: &Link) -> bool {
        link.is_usable()
    }
}

/// Writes CONNECT. The session is clean: the relay sends unconfirmed messages again, not the broker. There is no
/// keep-alive, because nothing runs while there is nothing to send.
fn put_connect(config: &MqttConfig, out: &mut BytesMut) -> Result<()> {
    let url = config.url.reveal();
    let user = match &config.user {
        Some(user) => Some(user.clone()),
        None if url.username().is_empty() => None,
        None => Some(plain(url.username())),
    };
    let password = match &config.password {
        Some(password) => Some(password.reveal()?),
        None => url.password().map(plain),
    };
    let client_id = match &config.client_id {
        Some(id) => id.clone(),
        None => format!("sendoff-{}", Uuid::now_v7().simple()),
    };
    for (name, text) in [
        ("client_id", Some(&client_id)),
        ("user", user.as_ref()),
        ("password", password.as_ref()),
    ] {
        check_length(name, text.map_or(0, String::len))?;
    }
    // A macro, because each version has its own types.
    macro_rules! connect {
        ($version:ident) => {{
            let connect = $version::Connect::builder().clean_start(true).keep_alive(0);
            let mut connect = connect.client_id(client_id.as_str()).map_err(unwritable)?;
            if let Some(user) = &user {
                connect = connect.user_name(user.as_str()).map_err(unwritable)?;
            }
            if let Some(password) = &password {
                connect = connect.password(password.as_str()).map_err(unwritable)?;
            }
            connect.build().map(Packet::from).map_err(unwritable)?
        }};
    }
    let connect = match config.version {
        Version::V5 => connect!(v5_0),
        Version::V311 => connect!(v3_1_1),
    };
    put(&connect, out);
    Ok(())
}

fn check_length(name: &str, size: usize) -> Result<()> {
    if size <= LONGEST_TEXT {
        return Ok(());
    }
    let what = format!("`{name}` of the MQTT sink is too long");
    Err(Error::new(ErrorKind::Invalid, what)
        .because(format!("it has {size} bytes, and MQTT allows {LONGEST_TEXT}"))
        .next_step("use a shorter value"))
}

fn unwritable(error: MqttError) -> Error {
    Error::new(
        ErrorKind::Invalid,
        "`client_id`, `user` or `password` of the MQTT sink is invalid",
    )
    .because(error.to_string())
    .next_step("use text without control characters")
}

/// Percent-decodes a part of a URL.
fn plain(text: &str) -> String {
    // Parsing a form value decodes it; `+` must stay `+`.
    let escaped = format!("v={}", text.replace('+', "%2B"));
    let value = url::form_urlencoded::parse(escaped.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
}
