//! Blocked addresses.

use sendoff::{ErrorKind, Sink};
use sendoff_sink_http::{Endpoint, HttpConfig, HttpSink};

use crate::message::{PAYLOAD, expect, plain, publish};
use crate::server::Server;

fn strict(url: &str) -> HttpSink {
    HttpSink::new(HttpConfig::new(Endpoint::parse(url).unwrap())).unwrap()
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_called() {
    let server = Server::status(200).await;
    let url = format!("http://localhost:{}/", server.address.port());
    expect(
        &publish(&strict(&url), plain(PAYLOAD)).await,
        "down",
        &["localhost resolves to", "allow_private"],
    );
    let error = strict(&url).check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_eq!((server.seen().len(), server.connections()), (0, 0));
}

#[tokio::test]
async fn an_address_in_the_url_is_not_called_either() {
    let server = Server::status(200).await;
    for url in [
        format!("http://127.0.0.1:{}/", server.address.port()),
        format!("http://2130706433:{}/", server.address.port()),
        format!("http://[::ffff:127.0.0.1]:{}/", server.address.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://169.254.169.254/{topic}".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        "https://10.0.0.1/".to_owned(),
    ] {
        expect(
            &publish(&strict(&url), plain(PAYLOAD)).await,
            "down",
            &["not a public address"],
        );
        assert_eq!(
            strict(&url).check().await.unwrap_err().kind(),
            ErrorKind::Denied,
            "{url}"
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_url_out_of_a_message_that_leads_inside_is_that_messages_end() {
    let server = Server::status(200).await;
    let sink = strict("{header:url}");
    for host in ["localhost", "127.0.0.1"] {
        let mut message = plain(PAYLOAD);
        message
            .headers
            .insert("url", format!("http://{host}:{}/", server.address.port()));
        expect(
            &publish(&sink, message).await,
            "permanent",
            &["not a public address", "allow_private"],
        );
    }
    assert_eq!(server.connections(), 0);
}
