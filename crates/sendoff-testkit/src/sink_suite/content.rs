//! Whatever is in a message arrives.

use std::sync::Arc;
use std::time::Duration;

use sendoff::envelope::rfc3339;
use sendoff::{Outcome, Outgoing};
use sendoff_wire::Format;
use tokio::time::Instant;

use super::copy::Copy;
use super::message::{batch, outgoing};
use super::registry::cases;
use super::scene::{Scene, publish};
use super::{HeaderText, Received};

cases![
    every_format_keeps_the_whole_message,
    nothing_is_sent_for_an_empty_batch,
    every_copy_has_the_same_id,
    a_full_batch_arrives_once,
];

async fn every_format_keeps_the_whole_message(mut scene: Scene) {
    for format in scene.capabilities.formats {
        scene.use_format(*format);
        let sink = scene.sink();
        let sent = specimens(&scene);
        assert_eq!(
            publish(&sink, &sent).await,
            vec![Outcome::Delivered; sent.len()],
            "{format:?}"
        );
        let others = *format;
        for outgoing in &sent {
            let own = own_copy(&mut scene, outgoing).await;
            let own = own.unwrap_or_else(|| panic!("{others:?}: {} was not received", outgoing.topic));
            compare(outgoing, &Copy::read(&own, *format, scene.capabilities), *format);
        }
        sink.close().await;
    }
}

/// What a consumer got of this message. The broker may still hold what was written in another format, and may hand a
/// message on a moment after it confirmed it.
async fn own_copy(scene: &mut Scene, outgoing: &Outgoing) -> Option<Received> {
    let id = outgoing.id.to_string();
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let own = scene.broker.received().await.into_iter().find(|received| {
            let in_header = received.headers.iter().any(|(_, value)| *value == id);
            in_header || String::from_utf8_lossy(&received.body).contains(&id)
        });
        if own.is_some() || Instant::now() > deadline {
            return own;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Messages with something special about them; the topic says what.
fn specimens(scene: &Scene) -> Vec<Arc<Outgoing>> {
    let mut specimens = Vec::new();
    let mut add = |topic: &str, payload: &[u8], change: &dyn Fn(&mut Outgoing)| {
        let mut specimen = outgoing(payload.to_vec());
        specimen.topic = format!("suite.{topic}");
        change(&mut specimen);
        specimens.push(Arc::new(specimen));
    };
    let binary = |outgoing: &mut Outgoing| outgoing.content_type = Some("application/octet-stream".to_owned());
    add("json", br#"{"total": 12.50, "b": 1, "a": 2}"#, &|_| {});
    add("indented", b"{\n  \"a\": 1\n}", &|_| {});
    add("empty", b"", &binary);
    add("nul", b"\0before\0\0after\0", &binary);
    add("bytes", &(0..=255).collect::<Vec<u8>>(), &binary);
    add("text", "gr\u{fc}n \u{1f980}".as_bytes(), &|outgoing| {
        outgoing.content_type = Some("text/plain; charset=utf-8".to_owned());
    });
    add("key", b"{}", &|outgoing| outgoing.key = Some("customer-7".to_owned()));
    add("event", b"{}", &|outgoing| {
        outgoing.key = Some("order:42".to_owned());
        outgoing.aggregate_type = Some("order".to_owned());
        outgoing.aggregate_id = Some("42".to_owned());
        outgoing.schema_version = Some(3);
    });
    add("headers", b"{}", &|outgoing| {
        outgoing
            .headers
            .insert("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        outgoing.headers.insert("x-tenant", "7; a=\"b\", c");
        outgoing.headers.insert("empty", "");
    });
    if scene.capabilities.formats.contains(&Format::CloudEvents) {
        add("attributes", b"{}", &|outgoing| {
            // Named like attributes of CloudEvents, and like the extension that keeps such headers.
            for name in ["id", "type", "subject", "dataschema", "sendoffheaders"] {
                outgoing.headers.insert(name, "mine");
            }
        });
    }
    add("context", b"{}", &|outgoing| {
        let context = [
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            ("baggage", "tenant=7%20b,sentry-release=shop%401.0,sentry-sampled=true"),
            ("sentry-trace", "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1"),
            ("log-context", r#"{"request_id":"a-1","tries":2,"path":"/a?b=%20c"}"#),
        ];
        for (name, value) in context {
            outgoing.headers.insert(name, value);
        }
    });
    if scene.capabilities.headers == HeaderText::Unicode {
        add("unicode", b"{}", &|outgoing| {
            outgoing.headers.insert("x-name", "gr\u{fc}n \u{1f980} \u{4e2d}");
        });
        add("odd", b"{}", &|outgoing| {
            outgoing.headers.insert("x-note", "one\r\nx-forged: 100%, two ");
            outgoing.headers.insert("odd, n\u{e4}me: 5%", "x");
        });
    }
    specimens
}

fn compare(sent: &Outgoing, copy: &Copy, format: Format) {
    let what = format!("{format:?} {}", sent.topic);
    assert_eq!(copy.id, sent.id, "{what}");
    assert_eq!(copy.topic, sent.topic, "{what}");
    assert_eq!(copy.key, sent.key, "{what}");
    assert_eq!(copy.created_at, rfc3339(sent.created_at), "{what}");
    assert_eq!(copy.payload, sent.payload, "{what}: the payload has changed");
    if let Some(content_type) = &copy.content_type {
        assert_eq!(content_type, sent.content_type(), "{what}");
    }
    for (name, value) in &sent.headers {
        let came = copy.headers.get(name);
        assert_eq!(came, Some(value), "{what}: the header {name} of {copy:?}");
    }
}

async fn nothing_is_sent_for_an_empty_batch(mut scene: Scene) {
    let sink = scene.sink();
    assert_eq!(publish(&sink, &[]).await, []);
    assert_eq!(scene.copies().await, []);
}

async fn every_copy_has_the_same_id(mut scene: Scene) {
    let sink = scene.sink();
    let sent = batch(1);
    // As when the first confirm was lost.
    publish(&sink, &sent).await;
    publish(&sink, &sent).await;
    for copy in scene.copies_of(&sent).await {
        assert_eq!(copy.id, sent[0].id);
    }
    assert!(scene.copies().await.iter().all(|copy| copy.id == sent[0].id));
}

async fn a_full_batch_arrives_once(mut scene: Scene) {
    let sink = scene.sink();
    let sent = batch(sink.limits().batch.unwrap_or(500).min(500));
    assert_eq!(publish(&sink, &sent).await, vec![Outcome::Delivered; sent.len()]);
    scene.copies_of(&sent).await;
    let counts = scene.counts().await;
    assert!(
        counts.len() == sent.len() && counts.values().all(|count| *count == 1),
        "{counts:?}"
    );
}
