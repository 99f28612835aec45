//! Introducing ourselves to a broker.

use std::sync::Arc;

use bytes::{BufMut as _, BytesMut};
use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_wire::{Dial, Refusal};

use crate::link::{Link, Terms};
use crate::packet::Incoming;
use crate::properties::{TooLong, put_bytes, put_text, put_varint};
use crate::stream::Stream;
use crate::{MqttConfig, Version, error};

/// How many messages a 3.1.1 broker is sent without a confirmation; it cannot say how many it likes. Mosquitto and others
/// keep twenty.
const WINDOW_311: u16 = 20;
const WINDOW_5: u16 = 1000;

pub(crate) struct Dialer(pub(crate) Arc<MqttConfig>);

impl Dial for Dialer {
    type Connection = Link;

    async fn dial(&self) -> Result<Link, Refusal> {
        let config = &self.0;
        let mut stream = Stream::open(config).await?;
        put_connect(config, &mut stream.out)?;
        let answer = stream.next().await.map_err(|broken| error::turned_away(&broken))?;
        let Incoming::ConnAck { code, told } = answer else {
            return Err(error::not_mqtt());
        };
        if code != 0 {
            return Err(error::refused(config.version, code, told.reason.as_deref()));
        }
        if told.maximum_qos.is_some_and(|most| most < u8::from(config.qos)) {
            return Err(error::qos_too_high(u8::from(config.qos)));
        }
        if config.retain && told.retain_available == Some(0) {
            return Err(error::no_retain());
        }
        let window = match config.version {
            // What it does not say is 65535.
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

    fn is_usable(&self, link: &Link) -> bool {
        link.is_usable()
    }
}

/// A clean session: what was not confirmed is the relay's to send again, not the broker's to remember.
fn put_connect(config: &MqttConfig, out: &mut BytesMut) -> Result<()> {
    let too_long = |TooLong(size): TooLong| {
        Error::new(
            ErrorKind::Invalid,
            "the client_id, user or password of the MQTT sink is too long",
        )
        .because(format!("it has {size} bytes, and MQTT has room for 65535"))
        .next_step("use a shorter one")
    };
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
    let mut body = BytesMut::with_capacity(128);
    put_text("MQTT", &mut body).map_err(too_long)?;
    body.put_u8(match config.version {
        Version::V5 => 5,
        Version::V311 => 4,
    });
    body.put_u8(0x02 | u8::from(user.is_some()) << 7 | u8::from(password.is_some()) << 6);
    // No keep-alive: nothing runs while there is nothing to send.
    body.put_u16(0);
    if config.version == Version::V5 {
        put_varint(0, &mut body);
    }
    match &config.client_id {
        Some(id) => put_text(id, &mut body),
        None => put_text(&format!("sendoff-{}", Uuid::now_v7().simple()), &mut body),
    }
    .map_err(too_long)?;
    for text in [user, password].into_iter().flatten() {
        put_bytes(text.as_bytes(), &mut body).map_err(too_long)?;
    }
    out.put_u8(0x10);
    put_varint(body.len(), out);
    out.put_slice(&body);
    Ok(())
}

/// What stands in a URL, without its percent signs.
fn plain(text: &str) -> String {
    // Parsing a form's value decodes it; `+` has to survive that.
    let escaped = format!("v={}", text.replace('+', "%2B"));
    let value = url::form_urlencoded::parse(escaped.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
}
