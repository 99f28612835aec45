//! `sendoff show`: one message in full.

use std::fmt::Write as _;
use std::io;

use sendoff::Uuid;
use sendoff_operate::{DeliveryView, MessageView};
use serde_json::Value;

use crate::commands::ls::tone;
use crate::exit::{Done, Exit};
use crate::output::{Paint, Tone, printable};
use crate::payload;
use crate::session::Session;

/// Shown in place of headers that are too long.
pub(crate) const TOO_LONG: &str = "too long to show";
/// Shown behind a payload that is not complete.
pub(crate) const CUT: &str = "\nOnly the beginning of the payload is shown.\n";

/// Show one message with its deliveries, attempts and payload
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the message
    id: Uuid,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let message = session.operator().await?.show(args.id).await?;
    print(&message, session)?;
    Ok(Exit::Ok)
}

/// Prints a message.
pub(crate) fn print(message: &MessageView, session: &Session) -> io::Result<()> {
    if session.output.json {
        return session.output.json(message);
    }
    session.output.print(&told(message, session.output.paint()))
}

fn told(message: &MessageView, paint: Paint) -> String {
    let mut page = Lines(String::new(), paint);
    let id = message.id.map_or_else(|| "unreadable".to_owned(), |id| id.to_string());
    page.line("", "message", &id);
    page.line(
        "",
        "status",
        &toned(message.status.as_str(), tone(message.status), paint),
    );
    page.line("", "topic", &printable(&message.topic));
    page.maybe("", "key", message.key.as_deref());
    page.maybe("", "aggregate type", message.aggregate_type.as_deref());
    page.maybe("", "aggregate id", message.aggregate_id.as_deref());
    page.maybe(
        "",
        "schema version",
        message.schema_version.map(|version| version.to_string()).as_deref(),
    );
    page.maybe("", "idempotency key", message.idempotency_key.as_deref());
    if message.priority != 0 {
        page.line("", "priority", &message.priority.to_string());
    }
    page.maybe(
        "",
        "max attempts",
        message.max_attempts.map(|most| most.to_string()).as_deref(),
    );
    page.line("", "created", &message.created_at);
    page.maybe("", "expires", message.expires_at.as_deref());
    page.line("", "lane, seq", &format!("{}, {}", message.lane, message.seq));
    page.line(
        "",
        "payload",
        &format!(
            "{} bytes of {}",
            message.payload_bytes,
            printable(&message.content_type)
        ),
    );
    headers(&mut page, &message.headers);
    if message.headers_cut {
        page.line("", "headers", TOO_LONG);
    }
    for sink in &message.deliveries {
        show_delivery(&mut page, sink);
    }
    let mut text = page.0;
    let shown = match (&message.payload, &message.payload_base64) {
        (Some(payload), _) => payload::text(payload, sendoff::envelope::is_json(&message.content_type)),
        (None, Some(encoded)) => payload::hexdump(encoded),
        (None, None) => String::new(),
    };
    if !shown.is_empty() {
        let _ = write!(text, "\n{shown}");
    }
    if message.payload_cut {
        text.push_str(CUT);
    }
    text
}

fn headers(page: &mut Lines, headers: &Value) {
    match headers {
        Value::Object(headers) => {
            for (name, value) in headers {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                page.line("", "header", &printable(&format!("{name}: {value}")));
            }
        }
        other => page.line("", "headers", &printable(&other.to_string())),
    }
}

fn show_delivery(page: &mut Lines, sink: &DeliveryView) {
    page.0.push('\n');
    page.line(
        "",
        "sink",
        &sink
            .sink
            .as_deref()
            .map_or_else(|| "not routed yet".to_owned(), printable),
    );
    let status = toned(sink.status.as_str(), tone(sink.status), page.1);
    match &sink.detail {
        Some(detail) => page.line("  ", "status", &format!("{status} ({})", printable(detail))),
        None => page.line("  ", "status", &status),
    }
    page.line("  ", "attempts", &sink.attempts.to_string());
    page.maybe("  ", "due", sink.due_at.as_deref());
    page.maybe("  ", "ended", sink.ended_at.as_deref());
    page.maybe("  ", "last error", sink.last_error.as_deref());
    for tried in &sink.history {
        let text = |text: &Option<String>| text.as_deref().map(printable).unwrap_or_default();
        page.line("  ", "tried", &format!("{}  {}", text(&tried.at), text(&tried.error)));
    }
}

struct Lines(String, Paint);

impl Lines {
    fn line(&mut self, indent: &str, name: &str, text: &str) {
        let name = self.1.dim(&format!("{name:<16}"));
        let _ = writeln!(self.0, "{indent}{name} {text}");
    }

    fn maybe(&mut self, indent: &str, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.line(indent, name, &printable(text));
        }
    }
}

fn toned(text: &str, tone: Tone, paint: Paint) -> String {
    match tone {
        Tone::Plain => text.to_owned(),
        Tone::Good => paint.good(text),
        Tone::Warning => paint.warning(text),
        Tone::Bad => paint.bad(text),
        Tone::Dim => paint.dim(text),
    }
}
