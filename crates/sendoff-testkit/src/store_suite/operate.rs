//! What an operator sees.

use std::time::Duration;

use sendoff::store::{DeadReason, Filter, Status, Stored, Verdict};
use sendoff::{Event, Message, Uuid};

use super::manual_relay::{ManualRelay, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

cases![
    a_list_is_oldest_first_and_says_whether_there_is_more,
    a_list_of_nothing_is_empty,
    a_message_is_found_with_all_its_deliveries,
    a_list_is_filtered_by_everything,
    a_star_in_a_topic_stands_for_any_text_and_nothing_else_does,
    a_text_is_searched_for_as_it_is,
    trailing_spaces_and_case_tell_texts_apart,
];

const LATER: Duration = Duration::from_secs(3600);

async fn list(scene: &Scene, filter: Filter) -> sendoff::Result<Vec<Stored>> {
    Ok(scene.subject.operate.list(&filter, 1000).await?.messages)
}

pub(super) async fn topics(scene: &Scene, filter: Filter) -> sendoff::Result<Vec<String>> {
    let mut topics: Vec<String> = list(scene, filter)
        .await?
        .into_iter()
        .map(|stored| stored.topic)
        .collect();
    topics.sort();
    Ok(topics)
}

pub(super) fn verdict(error: &str, dies: bool) -> Verdict {
    if dies {
        return Verdict::Dead {
            reason: DeadReason::Permanent,
            error: error.into(),
            charged: true,
            blocks: false,
        };
    }
    Verdict::Retry {
        state: sendoff::store::RetryState::Retry,
        delay: LATER,
        charged: true,
        error: error.into(),
    }
}

/// Messages in every state, each with a topic of its own.
pub(super) async fn in_every_state(scene: &Scene) -> sendoff::Result<ManualRelay> {
    let mut relay = scene.relay().await?;
    let order = |topic: &str| Message::from(Event::new("order", "7", topic).repeatable());
    scene
        .emit([
            plain("dead.plain"),
            order("dead.order"),
            plain("retry.plain"),
            order("retry.order"),
            plain("gone"),
        ])
        .await?;
    for outgoing in relay.read_messages(5).await {
        let deliveries = match outgoing.topic.split('.').next() {
            Some("dead") => vec![sink("a", verdict("error: 404", true))],
            Some("retry") => vec![sink("b", verdict("error: 503", false))],
            _ => vec![],
        };
        relay.settle(&[relay.settlement(&outgoing, deliveries)]).await?;
    }
    let pending = Message::bytes("pending.plain", "text/plain", "find the needle").idempotency_key("once");
    scene
        .emit([pending, order("pending.order"), plain("pending.later").delay(LATER)])
        .await?;
    Ok(relay)
}

async fn a_list_is_oldest_first_and_says_whether_there_is_more(scene: Scene) -> CaseResult {
    let mut ids = Vec::new();
    for n in 0..25 {
        // Some wait and some are ready: the table makes no difference.
        let message = numbered(&format!("k{n}"), n);
        let message = if n % 3 == 0 { message.delay(LATER) } else { message };
        ids.push(scene.emit([message]).await?[0].id());
        tokio::time::sleep(super::scene::TICK).await;
    }
    for (limit, more) in [(10, true), (24, true), (25, false), (30, false)] {
        let page = scene.subject.operate.list(&Filter::default(), limit).await?;
        assert_eq!(page.more, more, "{limit}");
        let listed = page.messages.into_iter().map(|stored| stored.id.expect("an id"));
        let expected: Vec<Uuid> = ids.iter().copied().take(limit).collect();
        assert_eq!(listed.collect::<Vec<_>>(), expected);
    }
    Ok(())
}

async fn a_list_of_nothing_is_empty(scene: Scene) -> CaseResult {
    let listing = scene.subject.operate.list(&Filter::default(), 10).await?;
    assert!(listing.messages.is_empty() && !listing.more);
    assert!(scene.subject.operate.find(Uuid::new_v4()).await?.is_empty());
    let summary = scene.subject.operate.summary().await?;
    assert_eq!(summary, Default::default());
    Ok(())
}

async fn a_message_is_found_with_all_its_deliveries(scene: Scene) -> CaseResult {
    let event = Event::new("order", "42", "order.placed")
        .schema_version(3)
        .header("a", "b");
    let message = Message::from(event).priority(4).max_attempts(7);
    scene.emit([message.clone(), plain("other")]).await?;
    let stored = scene.find_one(message.id()).await?;
    assert_eq!(
        (stored.status, stored.id, stored.topic.as_str()),
        (Status::Pending, Some(message.id()), "order.placed")
    );
    assert_eq!((stored.sink.as_str(), stored.key.as_deref()), ("", Some("order:42")));
    assert_eq!(
        (stored.aggregate_type.as_deref(), stored.aggregate_id.as_deref()),
        (Some("order"), Some("42"))
    );
    assert_eq!(
        (stored.schema_version, stored.idempotency_key.as_deref()),
        (Some(3), Some("order:42"))
    );
    assert_eq!((stored.content_type, stored.payload.as_slice()), (None, &b"{}"[..]));
    let headers: serde_json::Value = serde_json::from_str(stored.headers.as_deref().expect("headers")).expect("JSON");
    assert_eq!(headers, serde_json::json!({"a": "b"}));
    assert_eq!((stored.priority, stored.attempts, stored.max_attempts), (4, 0, Some(7)));
    assert_eq!(
        (stored.last_error, stored.detail, stored.due_at, stored.ended_at),
        (None, None, None, None)
    );
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(2).await {
        let deliveries = vec![sink("a", verdict("no", false)), sink("b", verdict("never", true))];
        relay.settle(&[relay.settlement(&outgoing, deliveries)]).await?;
    }
    let mut found = scene.subject.operate.find(message.id()).await?;
    found.sort_by(|one, other| one.sink.cmp(&other.sink));
    let shape: Vec<_> = found
        .iter()
        .map(|sink| (sink.sink.as_str(), sink.status, sink.last_error.as_deref()))
        .collect();
    assert_eq!(
        shape,
        [("a", Status::Retry, Some("no")), ("b", Status::Dead, Some("never"))]
    );
    assert!(found.iter().all(|sink| {
        sink.history
            .as_deref()
            .is_some_and(|history| history.contains("\"at\""))
    }));
    Ok(())
}

async fn a_list_is_filtered_by_everything(scene: Scene) -> CaseResult {
    let mut relay = in_every_state(&scene).await?;
    let by = Filter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (
            Filter {
                status: Some(Status::Pending),
                ..by()
            },
            &["pending.order", "pending.plain"][..],
        ),
        (
            Filter {
                status: Some(Status::Scheduled),
                ..by()
            },
            &["pending.later"],
        ),
        (
            Filter {
                status: Some(Status::Retry),
                ..by()
            },
            &["retry.order", "retry.plain"],
        ),
        (
            Filter {
                status: Some(Status::Dead),
                ..by()
            },
            &["dead.order", "dead.plain"],
        ),
        (
            Filter {
                status: Some(Status::Delivered),
                ..by()
            },
            &[],
        ),
        (
            Filter {
                topic: text("dead.plain"),
                ..by()
            },
            &["dead.plain"],
        ),
        (
            Filter {
                topic: text("*.order"),
                ..by()
            },
            &["dead.order", "pending.order", "retry.order"],
        ),
        (
            Filter {
                key: text("order:7"),
                ..by()
            },
            &["dead.order", "pending.order", "retry.order"],
        ),
        (
            Filter {
                key: text("order:"),
                ..by()
            },
            &[],
        ),
        (
            Filter {
                aggregate_type: text("order"),
                status: Some(Status::Retry),
                ..by()
            },
            &["retry.order"],
        ),
        (
            Filter {
                aggregate_id: text("7"),
                topic: text("p*"),
                ..by()
            },
            &["pending.order"],
        ),
        (
            Filter {
                idempotency_key: text("once"),
                ..by()
            },
            &["pending.plain"],
        ),
        (
            Filter {
                sink: text("a"),
                ..by()
            },
            &["dead.order", "dead.plain"],
        ),
        (
            Filter {
                sink: text(""),
                topic: text("pending.*"),
                ..by()
            },
            &["pending.later", "pending.order", "pending.plain"],
        ),
        (
            Filter {
                error: text("404"),
                ..by()
            },
            &["dead.order", "dead.plain"],
        ),
        (
            Filter {
                error: text("error"),
                topic: text("*plain"),
                ..by()
            },
            &["dead.plain", "retry.plain"],
        ),
        (
            Filter {
                payload: text("needle"),
                ..by()
            },
            &["pending.plain"],
        ),
        (
            Filter {
                payload: text("nothing like it"),
                ..by()
            },
            &[],
        ),
    ] {
        assert_eq!(topics(&scene, filter.clone()).await?, expected, "{filter:?}");
    }
    let all = list(&scene, by()).await?;
    assert_eq!(all.len(), 7);
    let ids: Vec<Uuid> = all.iter().take(2).filter_map(|stored| stored.id).collect();
    assert_eq!(
        list(
            &scene,
            Filter {
                ids: ids.clone(),
                ..by()
            }
        )
        .await?
        .len(),
        2
    );
    let oldest = all.iter().map(|stored| stored.created_at).min();
    let newest = all.iter().map(|stored| stored.created_at).max();
    let count = async |filter: Filter| Ok::<_, sendoff::Error>(list(&scene, filter).await?.len());
    assert_eq!(
        count(Filter {
            created_from: oldest,
            ..by()
        })
        .await?,
        7
    );
    assert_eq!(
        count(Filter {
            created_until: oldest,
            ..by()
        })
        .await?,
        0,
        "until is not included"
    );
    let last = all.iter().filter(|stored| Some(stored.created_at) == newest).count();
    assert_eq!(
        count(Filter {
            created_from: newest,
            ..by()
        })
        .await?,
        last,
        "from is included"
    );
    assert_eq!(
        count(Filter {
            created_until: newest,
            ..by()
        })
        .await?,
        7 - last
    );
    relay.read_messages(2).await;
    Ok(())
}

async fn a_star_in_a_topic_stands_for_any_text_and_nothing_else_does(scene: Scene) -> CaseResult {
    let names = ["a_b", "axb", "a%b", "a\\b", "A_B", "a.*b", "a[b]", "aab", "ab", "a?b"];
    scene.emit(names.map(plain)).await?;
    for (wanted, expected) in [
        ("a_b", vec!["a_b"]),
        ("a%b", vec!["a%b"]),
        ("a\\b", vec!["a\\b"]),
        ("a?b", vec!["a?b"]),
        ("a[b]", vec!["a[b]"]),
        ("A*", vec!["A_B"]),
        ("a*b", vec!["a%b", "a.*b", "a?b", "a\\b", "a_b", "aab", "ab", "axb"]),
        ("*", names.to_vec()),
        ("*_*", vec!["A_B", "a_b"]),
        (
            "**a**b**",
            vec!["a%b", "a.*b", "a?b", "a[b]", "a\\b", "a_b", "aab", "ab", "axb"],
        ),
    ] {
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        let filter = Filter {
            topic: Some(wanted.to_owned()),
            ..Filter::default()
        };
        assert_eq!(topics(&scene, filter).await?, expected, "{wanted}");
    }
    Ok(())
}

async fn a_text_is_searched_for_as_it_is(scene: Scene) -> CaseResult {
    let payloads: [&[u8]; 5] = [
        b"100% sure",
        b"100x sure",
        b"\x00binary\xff",
        "žluť".as_bytes(),
        b"UPPER",
    ];
    scene
        .emit(payloads.map(|payload| Message::bytes("t", "x/y", payload.to_vec())))
        .await?;
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(5).await {
        let text = String::from_utf8_lossy(&outgoing.payload).into_owned();
        relay
            .settle(&[relay.settlement(&outgoing, vec![sink("a", verdict(&text, true))])])
            .await?;
    }
    for (wanted, count) in [
        ("100%", 1),
        ("100", 2),
        ("binary", 1),
        ("ž", 1),
        ("upper", 0),
        ("UPPER", 1),
        ("1__", 0),
        ("'", 0),
    ] {
        let payload = Filter {
            payload: Some(wanted.to_owned()),
            ..Filter::default()
        };
        assert_eq!(list(&scene, payload).await?.len(), count, "payload {wanted}");
        let error = Filter {
            error: Some(wanted.to_owned()),
            ..Filter::default()
        };
        assert_eq!(list(&scene, error).await?.len(), count, "error {wanted}");
    }
    Ok(())
}

async fn trailing_spaces_and_case_tell_texts_apart(scene: Scene) -> CaseResult {
    let texts = ["abc", "abc ", "abc  ", " abc", "ABC", "Abc", "\u{e1}bc"];
    let message = |text: &str| {
        let event = Event::new(text, text, "t").idempotency_key(text);
        Message::from(event).key(text)
    };
    let emitted = scene
        .emit(texts.map(message).into_iter().chain(texts.map(plain)))
        .await?;
    assert!(emitted.iter().all(|emitted| !emitted.is_duplicate()), "{emitted:?}");
    let text = |text: &str| Some(text.to_owned());
    let by = Filter::default;
    for (at, wanted) in texts.into_iter().enumerate() {
        let of_event = emitted[at].id();
        let of_topic = emitted[texts.len() + at].id();
        for (filter, id) in [
            (
                Filter {
                    key: text(wanted),
                    ..by()
                },
                of_event,
            ),
            (
                Filter {
                    aggregate_type: text(wanted),
                    ..by()
                },
                of_event,
            ),
            (
                Filter {
                    aggregate_id: text(wanted),
                    ..by()
                },
                of_event,
            ),
            (
                Filter {
                    idempotency_key: text(wanted),
                    ..by()
                },
                of_event,
            ),
            (
                Filter {
                    topic: text(wanted),
                    ..by()
                },
                of_topic,
            ),
        ] {
            let found: Vec<_> = list(&scene, filter.clone())
                .await?
                .iter()
                .map(|stored| stored.id)
                .collect();
            assert_eq!(found, [Some(id)], "{filter:?}");
        }
    }
    Ok(())
}
