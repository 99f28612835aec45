//! A proxy that records what a client sends.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Passes connections to the server until the test's runtime ends.
pub(crate) struct Tap {
    pub(crate) port: u16,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    pub(crate) async fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = said.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server_port)).await.unwrap();
                tokio::spawn(pass(client, server, kept.clone()));
            }
        });
        Self { port, said }
    }

    /// The bytes of all clients since the last call.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.said.lock().unwrap())
    }
}

async fn pass(client: TcpStream, server: TcpStream, said: Arc<Mutex<Vec<u8>>>) {
    let (mut from, mut back) = client.into_split();
    let (mut answers, mut to) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        said.lock().unwrap().extend(&buffer[..count]);
        to.write_all(&buffer[..count]).await.unwrap();
    }
}
