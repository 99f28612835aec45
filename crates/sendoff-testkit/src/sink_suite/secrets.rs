//! Reasons are for logs: no payload and no password is in them.

use std::sync::Arc;

use sendoff::{Outcome, Outgoing, Sink};
use tokio::time::timeout;

use super::message::numbered;
use super::registry::cases;
use super::scene::{PATIENCE, Scene, publish, reason};
use crate::Fault;

cases![reasons_hold_no_payload, reasons_hold_no_password];

const CANARY: &str = "canary-6f1d";

fn with_canary(outgoing: &Outgoing) -> Arc<Outgoing> {
    let mut outgoing = outgoing.clone();
    let rest = outgoing.payload.slice(outgoing.payload.len().min(50)..);
    outgoing.payload = [b"\"".as_slice(), CANARY.as_bytes(), &rest, b"\""].concat().into();
    outgoing.headers.insert("x-secret", CANARY);
    outgoing.into()
}

fn is_clean(outcomes: &[Outcome]) {
    for outcome in outcomes {
        let text = reason(outcome);
        assert!(
            !text.contains(CANARY) && !format!("{outcome:?}").contains(CANARY),
            "{text}"
        );
        assert!(text.len() < 1000, "a reason of {} characters", text.len());
    }
}

async fn reasons_hold_no_payload(mut scene: Scene) {
    let sink = scene.connected_sink().await;
    let sent = [with_canary(&numbered(1))];
    if let Some(poison) = scene.poison() {
        is_clean(&publish(&sink, &[with_canary(&poison)]).await);
    }
    scene.proxy.set(Fault::LoseAnswers);
    let publishing = tokio::spawn({
        let (sink, sent) = (sink.clone(), sent.clone());
        async move { sink.publish(&sent).await }
    });
    scene.copies_of(&sent).await;
    scene.proxy.set(Fault::Refuse);
    is_clean(&timeout(PATIENCE, publishing).await.expect("publish ends").unwrap());
    is_clean(&publish(&sink, &sent).await);
}

async fn reasons_hold_no_password(scene: Scene) {
    let clean_check = async |sink: &Arc<dyn Sink>| {
        if let Err(error) = sink.check().await {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(CANARY), "{shown}");
        }
    };
    let sink = scene.sink_at(scene.proxy.port(), Some(CANARY));
    is_clean(&publish(&sink, &[numbered(1)]).await);
    clean_check(&sink).await;
    scene.proxy.set(Fault::Refuse);
    is_clean(&publish(&sink, &[numbered(1)]).await);
    clean_check(&sink).await;
}
