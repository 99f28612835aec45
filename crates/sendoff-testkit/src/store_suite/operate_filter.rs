//! What operators select by besides plain texts: patterns, values in payloads, a search, and what only dead letters have.

use std::time::Duration;

use sendoff::store::{Command, Filter, PayloadPath, RetryOptions};
use sendoff::{Event, Message};
use serde_json::json;

use super::manual_relay::sink;
use super::operate::{in_every_state, topics, verdict};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, plain};

cases![
    a_star_in_a_key_or_an_aggregate_stands_for_any_text,
    a_value_in_a_json_payload_is_found_by_its_path,
    a_search_looks_at_every_short_text,
    dead_letters_are_found_by_reason_and_time_of_death,
    what_is_found_by_these_filters_is_what_changes,
];

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn path(path: &[&str], value: &str) -> Filter {
    Filter {
        payload_paths: vec![PayloadPath {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            value: value.to_owned(),
        }],
        ..Filter::default()
    }
}

fn search(part: &str) -> Filter {
    Filter {
        search: text(part),
        ..Filter::default()
    }
}

async fn a_star_in_a_key_or_an_aggregate_stands_for_any_text(scene: Scene) -> CaseResult {
    let order = |id: &str, topic: &str| Message::from(Event::new("order", id, topic).repeatable());
    scene
        .emit([
            order("a_1", "one"),
            order("ab1", "two"),
            order("A_1", "three"),
            plain("four"),
        ])
        .await?;
    let key = |key| Filter {
        key: text(key),
        ..Filter::default()
    };
    let id = |id| Filter {
        aggregate_id: text(id),
        ..Filter::default()
    };
    let kind = |kind| Filter {
        aggregate_type: text(kind),
        ..Filter::default()
    };
    for (filter, expected) in [
        (key("order:a*"), &["one", "two"][..]),
        (key("order:a_1"), &["one"]),
        (key("*1"), &["one", "three", "two"]),
        (key("order:%"), &[]),
        (key("order"), &[]),
        (id("a*1"), &["one", "two"]),
        (id("a_1"), &["one"]),
        (kind("ord*"), &["one", "three", "two"]),
        (kind("Ord*"), &[]),
    ] {
        assert_eq!(topics(&scene, filter.clone()).await?, expected, "{filter:?}");
    }
    Ok(())
}

async fn a_value_in_a_json_payload_is_found_by_its_path(scene: Scene) -> CaseResult {
    let json = |topic, value| Message::json(topic, &value).expect("it serialises");
    scene
        .emit([
            json(
                "one",
                json!({"customer": {"id": 42, "name": "Zoë \"Z\""}, "paid": true, "note": null}),
            ),
            json("two", json!({"customer": {"id": "42"}, "paid": false})),
            json(
                "three",
                json!({"customer": {"id": 421}, "items": [{"sku": "A"}, {"sku": "B"}]}),
            ),
            Message::bytes("text", "text/plain", "{\"customer\": {\"id\": 42}"),
            Message::bytes("binary", "application/octet-stream", vec![0xff, 0x00, 0xfe]),
        ])
        .await?;
    for (filter, expected) in [
        (path(&["customer", "id"], "42"), &["one", "two"][..]),
        (path(&["customer", "id"], "421"), &["three"]),
        (path(&["customer", "id"], "4"), &[]),
        (path(&["customer", "name"], "Zoë \"Z\""), &["one"]),
        (path(&["paid"], "true"), &["one"]),
        (path(&["paid"], "false"), &["two"]),
        (path(&["note"], "null"), &["one"]),
        (path(&["items", "1", "sku"], "B"), &["three"]),
        (path(&["items", "2", "sku"], "B"), &[]),
        (path(&["customer"], "42"), &[]),
        (path(&["nothing"], "null"), &[]),
    ] {
        assert_eq!(topics(&scene, filter.clone()).await?, expected, "{filter:?}");
    }
    let mut both = path(&["customer", "id"], "42");
    both.payload_paths.extend(path(&["paid"], "false").payload_paths);
    assert_eq!(topics(&scene, both).await?, ["two"], "all of them must match");
    Ok(())
}

async fn a_search_looks_at_every_short_text(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    for (part, expected) in [
        ("pending.p", &["pending.plain"][..]),
        ("order:7", &["dead.order", "pending.order", "retry.order"]),
        ("once", &["pending.plain"]),
        ("error: 404", &["dead.order", "dead.plain"]),
        ("needle", &[]),
        ("100%", &[]),
        ("ERROR", &[]),
    ] {
        assert_eq!(topics(&scene, search(part)).await?, expected, "{part}");
    }
    let id = scene.emit([plain("by id")]).await?[0].id().to_string();
    assert_eq!(topics(&scene, search(&id)).await?, ["by id"]);
    assert_eq!(topics(&scene, search(&id[..30].to_uppercase())).await?, ["by id"]);
    assert!(
        topics(&scene, search(&id[1..])).await?.is_empty(),
        "an id is found by its beginning"
    );
    Ok(())
}

async fn dead_letters_are_found_by_reason_and_time_of_death(scene: Scene) -> CaseResult {
    let mut relay = in_every_state(&scene).await?;
    scene.pass(Duration::from_millis(20)).await?;
    let between = scene.subject.operate.now().await?;
    scene.pass(Duration::from_millis(20)).await?;
    scene.emit([plain("later")]).await?;
    for message in relay
        .read_messages(3)
        .await
        .into_iter()
        .filter(|message| message.topic == "later")
    {
        let deliveries = vec![sink("a", verdict("error: 500", true))];
        relay.settle(&[relay.settlement(&message, deliveries)]).await?;
    }
    let reason = |reason| Filter {
        reason: text(reason),
        ..Filter::default()
    };
    assert_eq!(
        topics(&scene, reason("permanent")).await?,
        ["dead.order", "dead.plain", "later"]
    );
    assert!(topics(&scene, reason("expired")).await?.is_empty());
    assert!(
        topics(&scene, reason("retry")).await?.is_empty(),
        "a state is not a reason"
    );
    let since = Filter {
        died_from: Some(between),
        ..Filter::default()
    };
    let before = Filter {
        died_until: Some(between),
        ..Filter::default()
    };
    assert_eq!(topics(&scene, since).await?, ["later"]);
    assert_eq!(topics(&scene, before).await?, ["dead.order", "dead.plain"]);
    Ok(())
}

async fn what_is_found_by_these_filters_is_what_changes(scene: Scene) -> CaseResult {
    in_every_state(&scene).await?;
    let operate = &scene.subject.operate;
    let mut by = Command::by("suite");
    let expired = Filter {
        reason: text("expired"),
        ..Filter::default()
    };
    let permanent = Filter {
        reason: text("permanent"),
        ..search("dead.plain")
    };
    let key = Filter {
        key: text("order:*"),
        ..Filter::default()
    };
    assert_eq!(operate.count(&expired).await?, 0);
    assert_eq!(operate.count(&permanent).await?, 1);
    assert_eq!(operate.retry_dead(&expired, None, 9, &mut by).await?, 0);
    assert_eq!(
        operate
            .discard_dead(&path(&["a"], "1"), None, 9, &mut Command::by("suite"))
            .await?,
        0
    );
    let due = RetryOptions::default();
    assert_eq!(
        operate.retry_waiting_count(&expired, due).await?,
        0,
        "only dead letters have a reason"
    );
    assert_eq!(operate.retry_waiting_count(&search("retry.p"), due).await?, 1);
    let mut command = Command::by("suite");
    let retried = operate.retry_waiting(&expired, due, None, 9, &mut command).await?;
    assert_eq!(retried.due, 0);
    let mut command = Command::by("suite");
    assert_eq!(operate.retry_waiting(&key, due, None, 9, &mut command).await?.due, 1);
    assert_eq!(
        operate
            .retry_dead(&permanent, None, 9, &mut Command::by("suite"))
            .await?,
        1
    );
    assert_eq!(operate.discard_dead(&key, None, 9, &mut Command::by("suite")).await?, 1);
    Ok(())
}
