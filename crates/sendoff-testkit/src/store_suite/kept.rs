//! What is kept of delivered messages, where there is a retention: which sink confirmed them, when, and after which
//! failures.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Command, Filter, Retention, Status, Stored, Verdict};
use sendoff::{Outcome, Uuid};
use sendoff_relay::{OnFailure, Relay};
use serde_json::Value;

use super::Setup;
use super::manual_relay::{retry, sink};
use super::registry::{CaseResult, cases};
use super::relays::{Running, everything, policy, settings};
use super::scene::{Scene, eventually, numbered, plain};
use crate::{Act, ScriptedSink};

const KEEPING: Setup = Setup {
    keep_delivered: true,
    ..Setup::PLAIN
};

cases![
    what_all_sinks_confirmed_together_is_kept_for_each_of_them with KEEPING,
    what_was_scheduled_is_kept_for_each_of_its_sinks with KEEPING,
    a_kept_delivery_has_its_failed_attempts with KEEPING,
    kept_deliveries_are_found_by_their_sink with KEEPING,
    a_sink_is_kept_by_its_name_whatever_that_is with KEEPING,
    a_relay_counts_deliveries_as_the_store_does with KEEPING,
    what_is_kept_for_several_sinks_is_cleaned_up with KEEPING,
];

fn of_sink(name: &str) -> Filter {
    Filter {
        status: Some(Status::Delivered),
        sink: Some(name.to_owned()),
        ..Filter::default()
    }
}

/// Both sinks at once.
fn both() -> Vec<sendoff::store::DeliverySettlement> {
    vec![sink("a", Verdict::Delivered), sink("b", Verdict::Delivered)]
}

fn errors(stored: &Stored) -> Vec<(String, String)> {
    let history: Vec<Value> = serde_json::from_str(stored.history.as_deref().expect("a history")).expect("JSON");
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| (text(entry, "sink"), text(entry, "error"));
    history.iter().map(entry).collect()
}

async fn check_both(scene: &Scene, id: Uuid) -> CaseResult {
    let found = scene.subject.operate.find(id).await?;
    let sinks: Vec<&str> = found.iter().map(|stored| stored.sink.as_str()).collect();
    assert_eq!(sinks, ["a", "b"], "{found:#?}");
    for stored in &found {
        assert_eq!((stored.status, stored.attempts), (Status::Delivered, 0));
        assert_eq!(
            (stored.payload.as_slice(), stored.key.as_deref()),
            (&b"7"[..], Some("k"))
        );
        assert_eq!((errors(stored), &stored.last_error), (Vec::new(), &None));
        assert!(stored.ended_at.is_some() && stored.ended_at == found[0].ended_at);
    }
    let all = Filter {
        status: Some(Status::Delivered),
        ..Filter::default()
    };
    assert_eq!(scene.subject.operate.count(&all).await?, 2, "deliveries");
    let listed = scene.subject.operate.list(&all, 10).await?.messages;
    let sinks: Vec<&str> = listed.iter().map(|stored| stored.sink.as_str()).collect();
    assert_eq!(sinks, ["a", "b"], "one line for each delivery");
    assert_eq!(scene.subject.operate.summary().await?.delivered, 2, "deliveries");
    Ok(())
}

async fn what_all_sinks_confirmed_together_is_kept_for_each_of_them(scene: Scene) -> CaseResult {
    let id = scene.emit([numbered("k", 7)]).await?[0].id();
    let mut relay = scene.relay().await?;
    assert!(relay.store.keeps_delivered(), "or relays would not list the deliveries");
    let read = relay.read_messages(1).await;
    relay.settle(&[relay.settlement(&read[0], both())]).await?;
    check_both(&scene, id).await
}

async fn what_was_scheduled_is_kept_for_each_of_its_sinks(scene: Scene) -> CaseResult {
    let id = scene.emit([numbered("k", 7).delay(Duration::from_millis(1))]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay.settle(&[relay.settlement(&read[0], both())]).await?;
    check_both(&scene, id).await
}

async fn a_kept_delivery_has_its_failed_attempts(scene: Scene) -> CaseResult {
    let id = scene.emit([plain("t")]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    let first = vec![sink("a", Verdict::Delivered), sink("b", retry(Duration::ZERO))];
    relay.settle(&[relay.settlement(&read[0], first)]).await?;
    let due = relay.read_messages(1).await;
    relay.settle_as(&retry(Duration::ZERO), &due).await?;
    let due = relay.read_messages(1).await;
    relay.deliver(&due).await?;
    let (a, b) = (scene.find_delivery(id, "a").await?, scene.find_delivery(id, "b").await?);
    assert_eq!((a.status, a.attempts, errors(&a)), (Status::Delivered, 0, Vec::new()));
    let failure = ("b".to_owned(), "it failed".to_owned());
    assert_eq!((b.status, b.attempts), (Status::Delivered, 2));
    assert_eq!(errors(&b), [failure.clone(), failure]);
    assert!(a.ended_at <= b.ended_at);
    assert_eq!(scene.subject.operate.summary().await?.delivered, 2);
    Ok(())
}

async fn kept_deliveries_are_found_by_their_sink(scene: Scene) -> CaseResult {
    scene.emit([plain("both"), plain("one"), plain("pending")]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    let of = |topic: &str| {
        read.iter()
            .find(|outgoing| outgoing.topic == topic)
            .expect("it was read")
    };
    let one = vec![sink("b", Verdict::Delivered)];
    let settlements = [relay.settlement(of("both"), both()), relay.settlement(of("one"), one)];
    relay.settle(&settlements).await?;
    for (name, expected) in [
        ("a", vec!["both"]),
        ("b", vec!["both", "one"]),
        ("c", vec![]),
        ("", vec![]),
    ] {
        let filter = of_sink(name);
        let listed = scene.subject.operate.list(&filter, 10).await?.messages;
        let mut topics: Vec<&str> = listed.iter().map(|stored| stored.topic.as_str()).collect();
        topics.sort_unstable();
        assert_eq!(topics, expected, "{name}");
        assert!(listed.iter().all(|stored| stored.sink == name));
        assert_eq!(scene.subject.operate.count(&filter).await?, expected.len() as u64);
    }
    Ok(())
}

async fn a_sink_is_kept_by_its_name_whatever_that_is(scene: Scene) -> CaseResult {
    let names = ["Ünï,\"quoted\" \\ 'name'", "a,b", "[\"a\"]", "null"];
    let id = scene.emit([plain("t")]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    let deliveries = names.iter().map(|name| sink(name, Verdict::Delivered)).collect();
    relay.settle(&[relay.settlement(&read[0], deliveries)]).await?;
    for name in names {
        assert_eq!(scene.find_delivery(id, name).await?.status, Status::Delivered);
        assert_eq!(scene.subject.operate.count(&of_sink(name)).await?, 1, "{name}");
    }
    Ok(())
}

/// Two sinks, one of which fails now and then: a count has one unit, in the report of the relay and in the store.
async fn a_relay_counts_deliveries_as_the_store_does(scene: Scene) -> CaseResult {
    const MESSAGES: usize = 60;
    let good = Arc::new(ScriptedSink::new());
    let flaky = Arc::new(
        ScriptedSink::new().script(|outgoing, copy| match (&*outgoing.payload, copy) {
            (b"3" | b"33", 1..=2) => Act::Refuse(Outcome::Temporary("not now".into())),
            _ => Act::Deliver,
        }),
    );
    let ids: Vec<Uuid> = {
        let keyed = (0..MESSAGES).map(|n| numbered(&format!("k{}", n % 6), n));
        let emitted = scene.emit(keyed).await?;
        emitted.into_iter().map(sendoff::Emitted::id).collect()
    };
    let builder = Relay::builder(scene.subject.relay.clone())
        .sink("good", good)
        .sink("flaky", flaky)
        .route(everything(), ["good", "flaky"])
        .settings(settings())
        .default_policy(policy(OnFailure::Block));
    let running = Running::start(builder);
    eventually("all of them are delivered", || async {
        Ok(scene.subject.relay.backlog().await? == Default::default())
    })
    .await?;
    let report = running.stop().await?;
    let deliveries = 2 * MESSAGES as u64;
    assert_eq!(
        (report.delivered, report.retried, report.dead),
        (deliveries, 4, 0),
        "two failed attempts at each of two; those behind them were only blocked"
    );
    assert_eq!(scene.subject.operate.summary().await?.delivered, deliveries);
    assert_eq!(scene.count(Status::Delivered).await?, 2 * MESSAGES);
    let mut failures = 0;
    for id in ids {
        let found = scene.subject.operate.find(id).await?;
        let mut sinks: Vec<&str> = found.iter().map(|stored| stored.sink.as_str()).collect();
        sinks.sort_unstable();
        assert_eq!(sinks, ["flaky", "good"], "{found:#?}");
        failures += found.iter().map(|stored| stored.attempts).sum::<i64>();
    }
    assert_eq!(failures, 4, "the store has charged what the relay counts");
    Ok(())
}

async fn what_is_kept_for_several_sinks_is_cleaned_up(scene: Scene) -> CaseResult {
    let id = scene.emit([numbered("k", 7)]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay.settle(&[relay.settlement(&read[0], both())]).await?;
    let old = Retention {
        delivered: Some(Duration::ZERO),
        ..Retention::default()
    };
    eventually("it goes", async || {
        let mut command = Command::by("suite");
        scene.subject.operate.clean_up(&old, 100, &mut command).await?;
        Ok(scene.subject.operate.find(id).await?.is_empty())
    })
    .await?;
    assert_eq!(scene.subject.operate.summary().await?.delivered, 0);
    Ok(())
}
