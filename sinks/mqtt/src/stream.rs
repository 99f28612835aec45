//! Bytes to and from a broker, with and without TLS.

use std::io;
use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use rustls::pki_types::ServerName;
use sendoff_wire::Refusal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::packet::{self, Incoming, Reader};
use crate::{MqttConfig, Version, error};

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection, with its read and write buffers.
pub(crate) struct Stream {
    reader: ReadHalf<Box<dyn Duplex>>,
    writer: WriteHalf<Box<dyn Duplex>>,
    pub(crate) version: Version,
    packets: Reader,
    read: BytesMut,
    /// The bytes to write next; append to it.
    pub(crate) out: BytesMut,
    is_flushed: bool,
}

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The broker closed it.
    Closed,
    /// An I/O error.
    Io(io::Error),
    /// The bytes are not MQTT.
    Malformed,
}

impl Stream {
    pub(crate) async fn open(config: &MqttConfig) -> Result<Self, Refusal> {
        let url = config.url.reveal();
        let is_encrypted = url.scheme() == "mqtts";
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port().unwrap_or(if is_encrypted { 8883 } else { 1883 });
        let tcp = TcpStream::connect((host.as_str(), port))
            .await
            .map_err(|error| error::unreachable(&config.url, &error))?;
        tcp.set_nodelay(true)
            .map_err(|error| error::unreachable(&config.url, &error))?;
        let duplex: Box<dyn Duplex> = if is_encrypted {
            let tls = config.tls.clone().unwrap_or_default().client()?;
            let name = ServerName::try_from(host).map_err(|_| error::bad_host(&config.url))?;
            let connecting = TlsConnector::from(Arc::new(tls)).connect(name, tcp);
            Box::new(connecting.await.map_err(|error| error::tls(&config.url, &error))?)
        } else {
            Box::new(tcp)
        };
        let (reader, writer) = split(duplex);
        Ok(Self {
            reader,
            writer,
            version: config.version,
            packets: Reader::new(config.version),
            read: BytesMut::with_capacity(4096),
            out: BytesMut::with_capacity(4096),
            is_flushed: true,
        })
    }

    /// Reads the next packet, and writes meanwhile. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Incoming, Broken> {
        loop {
            if let Some(packet) = self.packets.next(&mut self.read).map_err(|_| Broken::Malformed)? {
                return Ok(packet);
            }
            self.progress().await?;
        }
    }

    /// Writes all pending bytes, and reads meanwhile.
    pub(crate) async fn flush(&mut self) -> Result<(), Broken> {
        while !self.out.is_empty() || !self.is_flushed {
            self.progress().await?;
        }
        Ok(())
    }

    /// Reads or writes some bytes. It does both, because two sides that only write would block each other forever.
    async fn progress(&mut self) -> Result<(), Broken> {
        let Self {
            reader,
            writer,
            read,
            out,
            is_flushed,
            ..
        } = self;
        let has_work = !out.is_empty() || !*is_flushed;
        let working = async {
            if out.is_empty() {
                writer.flush().await?;
                *is_flushed = true;
                return Ok(());
            }
            *is_flushed = false;
            match writer.write(out).await? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                count => {
                    out.advance(count);
                    Ok(())
                }
            }
        };
        tokio::select! {
            biased;
            count = reader.read_buf(read) => match count.map_err(Broken::Io)? {
                0 => Err(Broken::Closed),
                _ => Ok(()),
            },
            worked = working, if has_work => worked.map_err(Broken::Io),
        }
    }

    /// Sends DISCONNECT.
    pub(crate) async fn close(&mut self) {
        packet::put_disconnect(self.version, &mut self.out);
        if self.flush().await.is_ok() {
            let _ = self.writer.shutdown().await;
        }
    }
}
